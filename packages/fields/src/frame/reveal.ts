/** Shows a value to its owner, inside the frame: as text or as a card, with a button that copies it. */
import type { ElementOptions, FrameRequest } from '../protocol.ts';
import { CallError } from './api.ts';
import { brandOf } from './brands.ts';
import type { FieldFrame, FieldSetting } from './field.ts';
import { cardNumber } from './inputs.ts';
import { controllers } from './registry.ts';
import { watchSeen } from './seen.ts';
import { wordsIn } from './words.ts';

export interface RevealFrame extends FieldFrame {
  handle(request: FrameRequest): Promise<unknown>;
}

export function createReveal({ options: given, tell }: FieldSetting): RevealFrame {
  let options: ElementOptions = given;
  const area = document.createElement('div');
  // What appears is read out once, politely.
  area.setAttribute('aria-live', 'polite');
  document.body.append(area);
  tell({ type: 'ready', state: { empty: true, complete: false, valid: true } });

  async function show(token: string, path: string | undefined): Promise<void> {
    try {
      await reveal(token, path);
    } catch (error) {
      const text = document.createElement('p');
      text.className = 'error';
      text.textContent = wordsIn(options.locale).of('unavailable');
      area.replaceChildren(text);
      throw error;
    }
  }

  async function reveal(token: string, path: string | undefined): Promise<void> {
    const [controller] = controllers();
    if (!controller)
      throw new CallError({ code: 'field_missing', message: 'The page has no fields.' });
    const shown = (await controller.reveal(token)) as { readonly data?: unknown };
    const value = path === undefined ? withoutCode(shown.data) : at({ data: shown.data }, path);
    if (options.format === 'card') showCard(value);
    else showText(value);
    tell({ type: 'change', state: { empty: false, complete: true, valid: true } });
  }

  function showText(value: unknown): void {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value ?? '');
    const row = document.createElement('div');
    row.className = 'shown';
    row.append(outputOf(text), copyButton(text));
    area.replaceChildren(row);
  }

  function showCard(value: unknown): void {
    const card = (typeof value === 'object' && value !== null ? value : { number: value }) as {
      readonly number?: unknown;
      readonly expiration_month?: unknown;
      readonly expiration_year?: unknown;
    };
    const words = wordsIn(options.locale);
    const number = String(card.number ?? '');
    const isWhole = /^\d+$/.test(number);
    const face = document.createElement('div');
    face.className = 'face';
    const head = document.createElement('div');
    head.className = 'row';
    const name = document.createElement('span');
    name.textContent = brandOf(number).badge;
    head.append(name, copyButton(number));
    const middle = outputOf(isWhole ? cardNumber.format(number) : number);
    middle.setAttribute('aria-label', words.of('number'));
    const foot = document.createElement('div');
    foot.className = 'row';
    const month = card.expiration_month;
    if (month !== undefined && month !== null) {
      const year = String(card.expiration_year ?? '').slice(-2);
      foot.append(labeled(words.of('expiry'), `${String(month).padStart(2, '0')} / ${year}`));
    }
    face.append(head, middle, foot);
    area.replaceChildren(face);
  }

  function copyButton(text: string): HTMLElement {
    const words = wordsIn(options.locale);
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = words.of('copy');
    const isSeen = watchSeen(button);
    button.addEventListener('click', ({ isTrusted }) => {
      if (!isTrusted || !isSeen()) return;
      void copy(text).then((isCopied) => {
        button.textContent = words.of(isCopied ? 'copied' : 'notCopied');
      });
    });
    return button;
  }

  function clear(): void {
    area.replaceChildren();
    tell({ type: 'change', state: { empty: true, complete: false, valid: true } });
  }

  return {
    focus: () => area.querySelector('button')?.focus(),
    clear,
    update: (changed) => {
      options = changed;
    },
    handle: (request) => {
      if (request.operation === 'reveal.show') return show(request.token, request.path);
      clear();
      return Promise.resolve();
    },
  };
}

function outputOf(text: string): HTMLElement {
  const output = document.createElement('output');
  output.textContent = text;
  return output;
}

function labeled(label: string, text: string): HTMLElement {
  const group = document.createElement('div');
  const small = document.createElement('small');
  small.textContent = label;
  group.append(small, text);
  return group;
}

/** The data without a security code, which PCI DSS 3.3 forbids to keep after authorization: only its path shows it. */
function withoutCode(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('cvc' in data)) return data;
  const { cvc: _, ...others } = data;
  return others;
}

/** A path such as `data.number`. */
function at(root: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => {
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
    return isThere ? (value as Record<string, unknown>)[key] : undefined;
  }, root);
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
