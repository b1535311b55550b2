/** One input of a field in the frame: formatting while the customer types, and what is wrong with it as text. */
import type { ElementOptions } from '../protocol.ts';
import type { InputKind } from './inputs.ts';
import type { Words } from './words.ts';

export interface Line {
  readonly kind: InputKind;
  readonly root: HTMLElement;
  readonly input: HTMLInputElement;
  /** Next to the input, for badges and the choice of a network. */
  readonly aside: HTMLElement;
  raw(): string;
  clear(): void;
  /** Shows what is wrong, and returns it. */
  report(): string | undefined;
  describe(options: ElementOptions, words: Words): void;
}

export interface LineEvents {
  readonly changed: () => void;
  readonly focused: (has: boolean) => void;
  readonly entered: () => void;
  /** The input can take no more. */
  readonly filled: () => void;
}

let count = 0;

export function createLine(kind: InputKind, events: LineEvents): Line {
  count += 1;
  const root = document.createElement('div');
  root.className = 'line';
  const label = document.createElement('label');
  const box = document.createElement('div');
  box.className = 'box';
  const input = document.createElement('input');
  const aside = document.createElement('span');
  aside.className = 'aside';
  const error = document.createElement('p');
  error.className = 'error';
  input.id = `input-${count}`;
  error.id = `error-${count}`;
  label.htmlFor = input.id;
  input.type = 'text';
  input.inputMode = kind.inputMode;
  input.spellcheck = false;
  input.autocapitalize = 'off';
  // Numbers are written from left to right in every language.
  if (kind.inputMode === 'numeric') input.dir = 'ltr';
  input.setAttribute('autocorrect', 'off');
  // A live region has to be there before its text.
  error.setAttribute('aria-live', 'polite');
  box.append(input, aside);
  root.append(label, box, error);

  let raw = '';
  let words: Words;
  let isTouched = false;

  const show = (flaw: string | undefined) => {
    error.textContent = flaw ?? '';
    root.classList.toggle('wrong', flaw !== undefined);
    input.setAttribute('aria-invalid', String(flaw !== undefined));
    if (flaw === undefined) input.removeAttribute('aria-describedby');
    else input.setAttribute('aria-describedby', error.id);
  };
  const flaw = () => {
    const word = kind.flaw(raw);
    return word && words.of(word);
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
    show(kind.isFull(raw) || (isTouched && error.textContent !== '') ? flaw() : undefined);
    events.changed();
    const isAtEnd = input.selectionStart === input.value.length;
    if (raw.length > before.length && isAtEnd && kind.isFull(raw) && !kind.flaw(raw))
      events.filled();
  });
  input.addEventListener('focus', () => events.focused(true));
  input.addEventListener('blur', () => {
    isTouched = true;
    if (raw !== '') show(flaw());
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
    clear: () => {
      raw = '';
      input.value = '';
      isTouched = false;
      show(undefined);
    },
    report: () => {
      isTouched = true;
      const wrong = flaw();
      show(wrong);
      return wrong;
    },
    describe: (options, given) => {
      words = given;
      const text = options.label || words.of(kind.label);
      label.textContent = text;
      label.classList.toggle('hidden', options.hideLabel === true);
      input.placeholder = options.placeholder ?? kind.placeholder(words.of('expiryHint'));
      input.autocomplete = kind.autocomplete as AutoFill;
      input.disabled = options.disabled === true;
      input.required = options.required !== false;
      if (error.textContent !== '') show(flaw());
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
