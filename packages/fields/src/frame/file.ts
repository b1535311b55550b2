/** A field for a document, which goes into a token as base64. */
import type { ElementOptions, State } from '../protocol.ts';
import type { FieldFrame, FieldSetting } from './field.ts';
import { controllers, incompleteError } from './registry.ts';
import { wordsIn } from './words.ts';

/** Base64 of it fits into the largest body that the vault takes. */
const fileBytesMax = 700_000;

export function createFileField({ element, options, tell }: FieldSetting): FieldFrame {
  const root = document.createElement('div');
  root.className = 'line';
  const label = document.createElement('label');
  const box = document.createElement('div');
  box.className = 'box';
  const input = document.createElement('input');
  const error = document.createElement('p');
  error.className = 'error';
  error.setAttribute('aria-live', 'polite');
  error.id = 'error';
  input.id = 'input';
  input.type = 'file';
  label.htmlFor = input.id;
  box.append(input);
  root.append(label, box, error);
  document.body.append(root);
  let words = wordsIn(options.locale);
  let isRequired = true;

  const flaw = () => {
    const file = input.files?.[0];
    if (!file) return isRequired ? 'required' : undefined;
    return file.size > fileBytesMax ? 'tooLarge' : undefined;
  };
  const stateOf = (): State => {
    const file = input.files?.[0];
    const code = file && flaw();
    return {
      empty: !file,
      complete: file !== undefined && code === undefined,
      valid: code === undefined,
      ...(code && { error: { code, message: words.of(code) } }),
    };
  };
  const report = () => {
    const code = flaw();
    error.textContent = code ? words.of(code) : '';
    root.classList.toggle('wrong', code !== undefined);
    input.setAttribute('aria-invalid', String(code !== undefined));
    if (code) input.setAttribute('aria-describedby', error.id);
    else input.removeAttribute('aria-describedby');
    return code;
  };
  const describe = (given: ElementOptions) => {
    words = wordsIn(given.locale);
    label.textContent = given.label || words.of('file');
    label.classList.toggle('hidden', given.hideLabel === true);
    input.accept = given.accept ?? '';
    input.disabled = given.disabled === true;
    isRequired = given.required !== false;
  };
  describe(options);
  input.addEventListener('change', () => {
    report();
    tell({ type: 'change', state: stateOf() });
  });
  input.addEventListener('focus', () => tell({ type: 'focus' }));
  input.addEventListener('blur', () => tell({ type: 'blur' }));
  for (const controller of controllers()) {
    controller.register(
      element,
      {
        read: async (part) => {
          const code = report();
          if (code) throw incompleteError();
          const file = input.files?.[0];
          if (!file) return null;
          if (part === 'name') return file.name;
          return part === 'type' ? file.type : base64Of(file);
        },
        secrets: () => [],
        enter: () => false,
      },
      window,
    );
  }
  tell({ type: 'ready', state: stateOf() });
  return {
    focus: () => input.focus(),
    clear: () => {
      input.value = '';
      tell({ type: 'change', state: stateOf() });
    },
    update: describe,
  };
}

async function base64Of(file: Blob): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 8_192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  }
  return btoa(text);
}
