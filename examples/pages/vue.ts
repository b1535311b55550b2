/** The same page with Vue. */
import { createApp } from 'vue';
import CardForm from './card-form.vue';

createApp(CardForm).mount('#app');
