/** Card fields as components of React. */
import {
  type CSSProperties,
  createContext,
  createElement,
  type ForwardRefExoticComponent,
  forwardRef,
  type ReactNode,
  type RefAttributes,
  useContext,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from 'react';
import { attributesOf, eventNames, type FieldAttributes, type FieldEvents } from './attributes.ts';
import { Fields, type FieldsOptions, type Kind, type StrongroomElement } from './fields.ts';

const Context = createContext<Fields | undefined>(undefined);

export interface FieldsProviderProps {
  /** Another key, vault, session or locale makes new fields, which are empty. */
  readonly options: FieldsOptions;
  readonly children?: ReactNode;
}

/**
 * The fields below it belong to the key of its options. It throws to the next error boundary where that key cannot be
 * used.
 */
export function FieldsProvider({ options, children }: FieldsProviderProps): ReactNode {
  const { key, vault, session, locale, timeoutMs } = options;
  const [fields, setFields] = useState<Fields>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    let made: Fields;
    try {
      made = new Fields({ key, vault, session, locale, timeoutMs });
    } catch (thrown) {
      setError(() => thrown);
      return undefined;
    }
    setError(undefined);
    setFields(made);
    return () => made.close();
  }, [key, vault, session, locale, timeoutMs]);
  if (error !== undefined) throw error;
  return createElement(Context.Provider, { value: fields }, children);
}

/** Of the nearest provider; `undefined` until it is in the page. */
export function useFields(): Fields | undefined {
  return useContext(Context);
}

type Handlers = {
  readonly [name in keyof FieldEvents as `on${Capitalize<name>}`]?:
    | ((detail: FieldEvents[name]) => void)
    | undefined;
};

export interface FieldProps extends FieldAttributes, Handlers {
  readonly className?: string | undefined;
  readonly style?: CSSProperties | undefined;
}

/** Its ref is the element, which goes into a body in place of a value. */
export type FieldComponent = ForwardRefExoticComponent<
  FieldProps & RefAttributes<StrongroomElement>
>;

function componentOf(kind: Kind): FieldComponent {
  const Component: FieldComponent = forwardRef((props, ref) => {
    const fields = useFields();
    const element = useRef<StrongroomElement>(null);
    const latest = useRef(props);
    useImperativeHandle(ref, () => element.current as StrongroomElement, []);
    useEffect(() => {
      latest.current = props;
    });
    useEffect(() => {
      const { current } = element;
      const hear = ({ type, detail }: Event & { readonly detail?: unknown }) => {
        const name = `on${type[0]?.toUpperCase()}${type.slice(1)}` as keyof Handlers;
        latest.current[name]?.(detail as never);
      };
      for (const name of eventNames) current?.addEventListener(name, hear);
      return () => {
        for (const name of eventNames) current?.removeEventListener(name, hear);
      };
    }, []);
    useEffect(() => {
      if (fields) element.current?.bind(fields);
    }, [fields]);
    const { className, style } = props;
    const attributes = { ...attributesOf(props), class: className, style };
    return createElement(`strongroom-${kind}`, { ...attributes, ref: element });
  });
  Component.displayName = `Strongroom(${kind})`;
  return Component;
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
