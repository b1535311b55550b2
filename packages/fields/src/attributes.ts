/** The attributes and events of elements, as the wrappers for React and Vue name them. */
import { type ElementOptions, type State, textAttributes } from './protocol.ts';

/** Those of `docs/fields-reference.md`, in the spelling of a property. The page's styles say the rest. */
export interface FieldAttributes
  extends Omit<ElementOptions, 'theme' | 'colorScheme' | 'direction' | 'format'> {
  readonly id?: string | undefined;
  readonly format?: 'text' | 'card' | undefined;
}

/** Why a field is not there. */
export interface ElementError {
  readonly code: string;
  readonly message: string;
  /** As the element shows it. */
  readonly customerMessage: string;
}

/** The detail of each event. */
export interface FieldEvents {
  readonly ready: State;
  readonly change: State;
  readonly focus: undefined;
  readonly blur: undefined;
  readonly enter: undefined;
  readonly error: ElementError;
}

export const eventNames = [
  ...(['ready', 'change', 'focus', 'blur', 'enter', 'error'] as const),
] satisfies readonly (keyof FieldEvents)[];

/** Attributes of the element, in HTML's spelling, without those that are not given. */
export function attributesOf(given: FieldAttributes): Readonly<Record<string, string>> {
  const texts = (['id', ...textAttributes] as const).flatMap((name) =>
    given[name] === undefined ? [] : [[name.toLowerCase(), given[name]] as const],
  );
  return {
    ...Object.fromEntries(texts),
    ...(given.hideLabel && { 'hide-label': '' }),
    ...(given.disabled && { disabled: '' }),
    ...(given.required === false && { required: 'false' }),
  };
}
