/** The attributes and events of elements, as the wrappers for React and Vue name them. */
import type { State } from './protocol.ts';

/** Those of `docs/fields.md`, in the spelling of a property. */
export interface FieldAttributes {
  readonly id?: string | undefined;
  readonly label?: string | undefined;
  readonly hideLabel?: boolean | undefined;
  readonly placeholder?: string | undefined;
  readonly locale?: string | undefined;
  readonly required?: boolean | undefined;
  readonly disabled?: boolean | undefined;
  readonly mask?: string | undefined;
  readonly pattern?: string | undefined;
  readonly inputMode?: string | undefined;
  readonly autocomplete?: string | undefined;
  readonly accept?: string | undefined;
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
  const { id, label, placeholder, locale, mask, pattern, inputMode, autocomplete } = given;
  const texts = { id, label, placeholder, locale, mask, pattern, inputmode: inputMode };
  const named = { ...texts, autocomplete, accept: given.accept, format: given.format };
  return {
    ...Object.fromEntries(
      Object.entries(named).filter((pair): pair is [string, string] => pair[1] !== undefined),
    ),
    ...(given.hideLabel && { 'hide-label': '' }),
    ...(given.disabled && { disabled: '' }),
    ...(given.required === false && { required: 'false' }),
  };
}
