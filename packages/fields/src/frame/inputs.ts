/** One line of input: how what is typed is written, when it is complete, and what it is worth in a request. */
import type { ElementOptions } from '../protocol.ts';
import { brandOf, passesLuhn, passesRouting } from './brands.ts';
import type { Word } from './words.ts';

export interface InputKind {
  readonly label: Word;
  readonly placeholder: (hint: string) => string;
  readonly autocomplete: string;
  readonly inputMode: 'numeric' | 'text';
  /** The characters of a text that count; separators do not. */
  significant(text: string): string;
  /** As people write it. */
  format(raw: string): string;
  /** Why what was typed cannot be sent; `undefined` if it can. Of an empty input it is never asked. */
  flaw(raw: string): Word | undefined;
  /** Nothing more can be added: what is wrong may be shown while it still has the focus. */
  isFull(raw: string): boolean;
  /** By the name of the part; `''` is the whole. */
  value(raw: string, part: string): unknown;
}

const digitsOf = (text: string) => text.normalize('NFKC').replace(/\D/g, '');
const numeric = { inputMode: 'numeric', significant: digitsOf } as const;

const cardNumberLengthMax = 19;
const lengthMaxOf = (raw: string) => Math.max(...brandOf(raw).lengths);

export const cardNumber: InputKind = {
  ...numeric,
  label: 'number',
  placeholder: () => '1234 1234 1234 1234',
  autocomplete: 'cc-number',
  significant: (text) => {
    const digits = digitsOf(text).slice(0, cardNumberLengthMax);
    return digits.slice(0, lengthMaxOf(digits));
  },
  format: (raw) => {
    const { gaps } = brandOf(raw);
    return [...raw].map((digit, at) => (gaps.includes(at) ? ` ${digit}` : digit)).join('');
  },
  flaw: (raw) => {
    if (!brandOf(raw).lengths.includes(raw.length)) return 'incomplete';
    return passesLuhn(raw) ? undefined : 'invalidNumber';
  },
  // Few numbers of a brand are longer than its usual length.
  isFull: (raw) => {
    const isUsual = raw.length >= 15 && brandOf(raw).lengths.includes(raw.length);
    return raw.length === lengthMaxOf(raw) || (isUsual && passesLuhn(raw));
  },
  value: (raw) => raw,
};

/** @param now the time of the customer's machine. */
export function expiryInput(now: () => Date): InputKind {
  const yearOf = (raw: string) => {
    const typed = raw.slice(2);
    return typed.length === 4 ? Number(typed) : 2000 + Number(typed);
  };
  return {
    ...numeric,
    label: 'expiry',
    placeholder: (hint) => hint,
    autocomplete: 'cc-exp',
    significant: (text) => {
      // `2030-12`, as some password managers write it.
      const [, isoYear, isoMonth] = /^\s*(20\d\d)\D+(\d\d)\s*$/.exec(text) ?? [];
      if (isoYear && isoMonth) return isoMonth + isoYear.slice(2);
      const [, month, rest] = /^\s*(\d)\s*[/.\-\s]\s*(.*)$/.exec(text) ?? [];
      let digits = digitsOf(month === undefined ? text : `0${month}${rest}`);
      if (/^[2-9]/.test(digits)) digits = `0${digits}`;
      const [, start = '', year = ''] = /^(\d\d)(20\d\d)$/.exec(digits) ?? [];
      return year === ''
        ? digits.slice(0, digits[2] === '2' && digits[3] === '0' ? 6 : 4)
        : start + year.slice(2);
    },
    format: (raw) => (raw.length < 2 ? raw : `${raw.slice(0, 2)} / ${raw.slice(2)}`),
    flaw: (raw) => {
      const month = Number(raw.slice(0, 2));
      if (raw.length >= 2 && (month < 1 || month > 12)) return 'invalid';
      if (raw.length !== 4) return 'incompleteExpiry';
      const today = now();
      const months = (yearOf(raw) - today.getFullYear()) * 12 + month - 1 - today.getMonth();
      if (months < 0) return 'pastExpiry';
      return months > 50 * 12 ? 'invalid' : undefined;
    },
    isFull: (raw) => raw.length === 4,
    value: (raw, part) => {
      const month = Number(raw.slice(0, 2));
      const year = yearOf(raw);
      if (part === 'month') return month;
      return part === 'year' ? year : `${raw.slice(0, 2)}/${year}`;
    },
  };
}

/** @param length of the code as the brand of the number has it; 0 where no number is known. */
export function codeInput(length: () => number): InputKind {
  const lengthMax = () => length() || 4;
  return {
    ...numeric,
    label: 'code',
    placeholder: () => '123',
    autocomplete: 'cc-csc',
    significant: (text) => digitsOf(text).slice(0, lengthMax()),
    format: (raw) => raw,
    flaw: (raw) => {
      return raw.length >= (length() || 3) ? undefined : 'incompleteCode';
    },
    isFull: (raw) => raw.length === lengthMax(),
    value: (raw) => raw,
  };
}

export const routingNumber: InputKind = {
  ...numeric,
  label: 'routing',
  placeholder: () => '110000000',
  autocomplete: 'off',
  significant: (text) => digitsOf(text).slice(0, 9),
  format: (raw) => raw,
  flaw: (raw) => {
    if (raw.length < 9) return 'incomplete';
    return passesRouting(raw) ? undefined : 'invalidRouting';
  },
  isFull: (raw) => raw.length === 9,
  value: (raw) => raw,
};

export const accountNumber: InputKind = {
  ...numeric,
  label: 'account',
  placeholder: () => '000123456789',
  autocomplete: 'off',
  significant: (text) => digitsOf(text).slice(0, 17),
  format: (raw) => raw,
  flaw: (raw) => (raw.length < 3 ? 'incomplete' : undefined),
  isFull: (raw) => raw.length === 17,
  value: (raw) => raw,
};

const textLengthMax = 1_000;
const maskClasses: Readonly<Record<string, RegExp>> = { '0': /\d/, a: /\p{L}/u, '*': /[\p{L}\d]/u };

/** Its mask and pattern stay as they were at the beginning: a page that changed them could ask about the value. */
export function textInput({ mask, pattern, inputMode, autocomplete }: ElementOptions): InputKind {
  const slots = [...(mask ?? '')].filter((sign) => sign in maskClasses);
  const expression = expressionOf(pattern);
  return {
    label: 'text',
    placeholder: () => mask?.replace(/[a*]/g, '_') ?? '',
    autocomplete: autocomplete ?? 'off',
    inputMode: inputMode === 'numeric' ? 'numeric' : 'text',
    significant: (text) => {
      if (mask === undefined) return text.slice(0, textLengthMax);
      let kept = '';
      for (const sign of text.normalize('NFKC')) {
        if (kept.length < slots.length && maskClasses[slots[kept.length] ?? '']?.test(sign))
          kept += sign;
      }
      return kept;
    },
    format: (raw) => {
      if (mask === undefined) return raw;
      let used = 0;
      let text = '';
      for (const sign of mask) {
        if (used >= raw.length) break;
        text += sign in maskClasses ? (raw[used++] ?? '') : sign;
      }
      return text;
    },
    flaw(raw) {
      if (mask !== undefined && raw.length < slots.length) return 'incomplete';
      return expression && !expression.test(this.format(raw)) ? 'invalid' : undefined;
    },
    isFull: (raw) => mask !== undefined && raw.length === slots.length,
    value(raw, part) {
      return part === 'unformatted' ? raw : this.format(raw);
    },
  };
}

function expressionOf(pattern: string | undefined): RegExp | undefined {
  try {
    return pattern === undefined ? undefined : new RegExp(`^(?:${pattern})$`, 'u');
  } catch {
    return undefined;
  }
}
