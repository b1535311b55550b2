/** The script that a page loads from the vault. It defines the elements, and `Strongroom.fields`. */
import { defineElements } from './elements.ts';
import { Fields, FieldsError, type FieldsOptions } from './fields.ts';

const { currentScript } = document;
const vault =
  currentScript instanceof HTMLScriptElement ? new URL(currentScript.src).origin : undefined;

defineElements();
Object.assign(globalThis, {
  Strongroom: Object.freeze({
    fields: (options: FieldsOptions) => new Fields({ vault, ...options }),
    FieldsError,
  }),
});
