/** A label, an input in its box, and below it what is wrong as text: each line of a field is one. */
import type { ElementOptions } from '../protocol.ts';

export interface LabeledInput {
  readonly root: HTMLElement;
  readonly input: HTMLInputElement;
  readonly box: HTMLElement;
  /** Shows a sentence, or that nothing is wrong. */
  show(flaw: string | undefined): void;
  isWrong(): boolean;
  /** @param name of what is typed, unless the page gives a label. */
  describe(options: ElementOptions, name: string): void;
}

let count = 0;

export function createLabeledInput(): LabeledInput {
  count += 1;
  const root = document.createElement('div');
  root.className = 'line';
  const label = document.createElement('label');
  const box = document.createElement('div');
  box.className = 'box';
  const input = document.createElement('input');
  const error = document.createElement('p');
  error.className = 'error';
  input.id = `input-${count}`;
  error.id = `error-${count}`;
  label.htmlFor = input.id;
  // A live region has to be there before its text.
  error.setAttribute('aria-live', 'polite');
  box.append(input);
  root.append(label, box, error);
  return {
    root,
    input,
    box,
    show: (flaw) => {
      error.textContent = flaw ?? '';
      root.classList.toggle('wrong', flaw !== undefined);
      input.setAttribute('aria-invalid', String(flaw !== undefined));
      if (flaw === undefined) input.removeAttribute('aria-describedby');
      else input.setAttribute('aria-describedby', error.id);
    },
    isWrong: () => error.textContent !== '',
    describe: (options, name) => {
      label.textContent = options.label || name;
      label.classList.toggle('hidden', options.hideLabel === true);
      input.disabled = options.disabled === true;
      input.required = options.required !== false;
    },
  };
}
