/** Card fields as components of Vue. */
import {
  type DefineComponent,
  defineComponent,
  h,
  type InjectionKey,
  inject,
  markRaw,
  onMounted,
  onUnmounted,
  provide,
  type ShallowRef,
  shallowRef,
  watch,
} from 'vue';
import { attributesOf, eventNames, type FieldAttributes, type FieldEvents } from './attributes.ts';
import { Fields, type FieldsOptions, type Kind, type StrongroomElement } from './fields.ts';
import { textAttributes } from './protocol.ts';

type FieldsRef = Readonly<ShallowRef<Fields | undefined>>;
const injected: InjectionKey<FieldsRef> = Symbol('strongroom fields');

/**
 * To be called in the setup of a component: the fields below it belong to the key of the options. They are there once
 * the component is in the page.
 */
export function provideFields(options: FieldsOptions): FieldsRef {
  const fields = shallowRef<Fields>();
  onMounted(() => {
    fields.value = markRaw(new Fields(options));
  });
  onUnmounted(() => fields.value?.close());
  provide(injected, fields);
  return fields;
}

/** Those of the nearest component that provides them. */
export function useFields(): FieldsRef {
  return inject(injected, () => shallowRef<Fields>(), true);
}

/** What a template ref of a field has. */
export interface FieldInstance {
  /** Goes into a body in place of a value. */
  readonly element: StrongroomElement;
}

type None = Record<never, never>;

export type FieldComponent = DefineComponent<
  FieldAttributes,
  FieldInstance,
  None,
  None,
  None,
  None,
  None,
  { readonly [name in keyof FieldEvents]: (detail: FieldEvents[name]) => true }
>;

const properties = {
  ...Object.fromEntries(['id', ...textAttributes].map((name) => [name, String])),
  hideLabel: Boolean,
  disabled: Boolean,
  required: { type: Boolean, default: true },
};

function componentOf(kind: Kind): FieldComponent {
  return defineComponent({
    name: `Strongroom${kind.replace(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`,
    props: properties,
    emits: [...eventNames],
    setup(props, { emit, expose }) {
      const element = shallowRef<StrongroomElement>();
      const fields = useFields();
      const listeners = Object.fromEntries(
        eventNames.map((name) => [
          `on${name[0]?.toUpperCase()}${name.slice(1)}`,
          ({ detail }: CustomEvent) => emit(name, detail),
        ]),
      );
      watch([element, fields], ([at, to]) => {
        if (at && to) at.bind(to);
      });
      expose({ element });
      return () =>
        h(`strongroom-${kind}`, {
          ...attributesOf(props as FieldAttributes),
          ...listeners,
          ref: element,
        });
    },
  }) as unknown as FieldComponent;
}

export const Card: FieldComponent = componentOf('card');
export const CardNumber: FieldComponent = componentOf('card-number');
export const CardExpiry: FieldComponent = componentOf('card-expiry');
export const CardCode: FieldComponent = componentOf('card-code');
export const TextField: FieldComponent = componentOf('text');
export const BankAccount: FieldComponent = componentOf('bank-account');
export const RoutingNumber: FieldComponent = componentOf('routing-number');
export const AccountNumber: FieldComponent = componentOf('account-number');
export const FileField: FieldComponent = componentOf('file');
export const Reveal: FieldComponent = componentOf('reveal');
