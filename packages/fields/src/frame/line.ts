/** One input of a field in the frame: formatting while the customer types, and what is wrong with it as text. */
import type { ElementOptions } from '../protocol.ts';
import type { InputKind } from './inputs.ts';
import { createLabeledInput } from './labeled-input.ts';
import type { Word, Words } from './words.ts';

export interface Line {
  readonly kind: InputKind;
  readonly root: HTMLElement;
  readonly input: HTMLInputElement;
  /** Next to the input, for badges and the choice of a network. */
  readonly aside: HTMLElement;
  raw(): string;
  clear(): void;
  /** Why it cannot be sent; `undefined` if it can. */
  flaw(): Word | undefined;
  /** `undefined` for an empty input that may be: a request leaves it out. */
  value(part: string): unknown;
  /** Shows what is wrong, and returns it. */
  report(): Word | undefined;
  describe(options: ElementOptions, words: Words): void;
}

export interface LineEvents {
  readonly changed: () => void;
  readonly focused: (has: boolean) => void;
  readonly entered: () => void;
  /** The input can take no more. */
  readonly filled: () => void;
}

export function createLine(kind: InputKind, events: LineEvents): Line {
  const labeled = createLabeledInput();
  const { root, input, show } = labeled;
  const aside = document.createElement('span');
  aside.className = 'aside';
  labeled.box.append(aside);
  input.type = 'text';
  input.inputMode = kind.inputMode;
  input.spellcheck = false;
  input.autocapitalize = 'off';
  // Numbers are written from left to right in every language.
  if (kind.inputMode === 'numeric') input.dir = 'ltr';
  input.setAttribute('autocorrect', 'off');

  let raw = '';
  let words: Words;
  let isTouched = false;

  const flaw = () => {
    if (raw !== '') return kind.flaw(raw);
    return input.required ? 'required' : undefined;
  };
  const showFlaw = () => {
    const word = flaw();
    show(word && words.of(word));
    return word;
  };

  input.addEventListener('input', (event) => {
    const before = raw;
    const typed = input.value;
    const caret = input.selectionStart ?? typed.length;
    let ahead = kind.significant(typed.slice(0, caret)).length;
    raw = kind.significant(typed);
    const { inputType = '' } = event as InputEvent;
    // The key for deletion met a separator: it means the character before it.
    if (inputType === 'deleteContentBackward' && raw === before && ahead > 0) {
      raw = raw.slice(0, ahead - 1) + raw.slice(ahead);
      ahead -= 1;
    }
    const text = kind.format(raw);
    if (text !== typed) {
      input.value = text;
      const place = caretAfter(text, ahead, kind);
      input.setSelectionRange(place, place);
    }
    if (kind.isFull(raw) || (isTouched && labeled.isWrong())) showFlaw();
    else show(undefined);
    events.changed();
    const isAtEnd = input.selectionStart === input.value.length;
    if (raw.length > before.length && isAtEnd && kind.isFull(raw) && !flaw()) events.filled();
  });
  input.addEventListener('focus', () => events.focused(true));
  input.addEventListener('blur', () => {
    isTouched = true;
    if (raw !== '') showFlaw();
    events.focused(false);
    events.changed();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.isComposing) events.entered();
  });

  return {
    kind,
    root,
    input,
    aside,
    raw: () => raw,
    flaw,
    value: (part) => (raw === '' ? undefined : kind.value(raw, part)),
    clear: () => {
      raw = '';
      input.value = '';
      isTouched = false;
      show(undefined);
    },
    report: () => {
      isTouched = true;
      return showFlaw();
    },
    describe: (options, given) => {
      words = given;
      labeled.describe(options, words.of(kind.label));
      input.placeholder = options.placeholder ?? kind.placeholder(words.of('expiryHint'));
      input.autocomplete = kind.autocomplete as AutoFill;
      // Some password managers look at the name alone.
      if (kind.autocomplete !== 'off') input.name = kind.autocomplete;
      if (labeled.isWrong()) showFlaw();
    },
  };
}

/** Where the caret goes so that as many characters that count are before it as there were. */
function caretAfter(text: string, ahead: number, kind: InputKind): number {
  for (let at = 0; at <= text.length; at += 1) {
    if (kind.significant(text.slice(0, at)).length < ahead) continue;
    // At the end of what was typed the caret follows separators, so that the next character comes after them.
    return kind.significant(text.slice(at)) === '' ? text.length : at;
  }
  return text.length;
}
