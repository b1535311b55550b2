/** Starts the console. */
import { render } from 'preact';
import { App } from './app.tsx';
import { providerReturn } from './core/provider.ts';
import { refresh } from './core/session.ts';
import { apply } from './core/theme.ts';

apply();
const root = document.getElementById('app');
if (root) render(<App />, root);
// Whoever comes back from the identity provider is about to sign in.
if (providerReturn === undefined) void refresh();
// The browser says when its network goes and comes.
for (const change of ['offline', 'online']) window.addEventListener(change, () => void refresh());

// A page that the browser kept whole may hold what its person has not seen since, or is no longer allowed to see.
window.addEventListener('pageshow', (event) => {
  if (event.persisted) location.reload();
});
