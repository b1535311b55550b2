/** A field for a document, which goes into a token as base64. */
import type { ElementOptions, State } from '../protocol.ts';
import type { FieldFrame, FieldSetting } from './field.ts';
import { createLabeledInput } from './labeled-input.ts';
import { controllers, incompleteError } from './registry.ts';
import { wordsIn } from './words.ts';

/** Base64 of it fits into the largest body that the vault takes. */
const fileBytesMax = 700_000;

export function createFileField({ element, options, tell }: FieldSetting): FieldFrame {
  const { root, input, show, isWrong, describe: label } = createLabeledInput();
  input.type = 'file';
  document.body.append(root);
  let words = wordsIn(options.locale);
  /** As it was last sent. */
  let content: string | undefined;

  const flaw = () => {
    const file = input.files?.[0];
    if (!file) return input.required ? 'required' : undefined;
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
    show(code && words.of(code));
    return code;
  };
  const describe = (given: ElementOptions) => {
    words = wordsIn(given.locale);
    label(given, words.of('file'));
    input.accept = given.accept ?? '';
    if (isWrong()) report();
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
          if (!file) return undefined;
          if (part === 'name') return file.name;
          if (part === 'type') return file.type;
          content = await base64Of(file);
          return content;
        },
        secrets: () => (content ? [content] : []),
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
      content = undefined;
      show(undefined);
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
