/** What in a text is sensitive: card numbers, IBANs, social security numbers, and keys of known forms. */
import { cardBrand, ibanLength, ibanValid, luhnValid } from '../base/checks.ts';
import type { Json } from '../base/json.ts';
import { createPause } from '../base/pauses.ts';
import type { TokenTypeName } from './contents/token-types.ts';

export interface FoundValue {
  /** In the text, the end not included. */
  readonly start: number;
  readonly end: number;
  readonly kind: 'card_number' | 'iban' | 'social_security_number' | 'key';
  /** As it is stored: numbers without separators. */
  readonly value: string;
}

/** How what is found is stored. */
export const storedKinds: Readonly<
  Record<
    FoundValue['kind'],
    { readonly type: TokenTypeName; readonly mask?: Json; readonly container?: string }
  >
> = {
  card_number: { type: 'card_number' },
  iban: { type: 'token', mask: '{{ data | reveal_last: 4 }}', container: '/bank/high/' },
  social_security_number: { type: 'social_security_number' },
  key: { type: 'token' },
};

/** A place at which there is a value, or could have been: others may have their turn after each. */
type SearchedPlace = FoundValue | undefined;

/** In the order of the text, without overlaps. Of two that overlap, the one that begins first, or is longer, counts. */
export async function findSensitive(text: string): Promise<readonly FoundValue[]> {
  const pause = createPause();
  const all: FoundValue[] = [];
  for (const search of [keysIn, ibansIn, cardsIn, socialNumbersIn]) {
    for (const one of search(text)) {
      if (one) all.push(one);
      const waits = pause();
      if (waits) await waits;
    }
  }
  all.sort((a, b) => a.start - b.start || b.end - a.end);
  const found: FoundValue[] = [];
  for (const one of all) if (one.start >= (found.at(-1)?.end ?? 0)) found.push(one);
  return found;
}

/** What issuers write before their keys, so that they can be found. */
const keyForms = [
  // Payment providers.
  '(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,250}',
  'whsec_[A-Za-z0-9+/=]{24,250}',
  // Model providers.
  'sk-[A-Za-z0-9_-]{20,250}',
  'hf_[A-Za-z0-9]{30,100}',
  // Clouds.
  '(?:AKIA|ASIA)[0-9A-Z]{16}',
  'AIza[0-9A-Za-z_-]{35}',
  'dop_v1_[a-f0-9]{64}',
  // Code and packages.
  'gh[pousr]_[A-Za-z0-9]{36,250}',
  'github_pat_[A-Za-z0-9_]{22,250}',
  'glpat-[A-Za-z0-9_-]{20,250}',
  'npm_[A-Za-z0-9]{36}',
  // Messages and mail.
  'xox[abeoprs]-[A-Za-z0-9-]{10,250}',
  'SG\\.[A-Za-z0-9_-]{16,64}\\.[A-Za-z0-9_-]{16,64}',
  // Signed tokens, RFC 7519.
  'eyJ[A-Za-z0-9_-]{10,4000}\\.eyJ[A-Za-z0-9_-]{10,4000}\\.[A-Za-z0-9_-]{10,1000}',
];
const keyForm = new RegExp(`(?<![A-Za-z0-9_-])(?:${keyForms.join('|')})(?![A-Za-z0-9])`, 'g');
const pemLabel = '(?:[A-Z]{2,12} ){0,2}PRIVATE KEY-----';
const pemForm = new RegExp(
  `-----BEGIN ${pemLabel}(?:[^-]|-(?!----)){1,8000}-----END ${pemLabel}`,
  'g',
);

function* keysIn(text: string): Generator<SearchedPlace> {
  for (const form of [keyForm, pemForm]) {
    for (const { index: start, 0: value } of text.matchAll(form)) {
      yield { start, end: start + value.length, kind: 'key', value };
    }
  }
}

const ibanStart = /(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?= ?[A-Za-z0-9])/g;

/** In groups of four or without spaces. */
function* ibansIn(text: string): Generator<SearchedPlace> {
  for (const { index: start, 0: head } of text.matchAll(ibanStart)) {
    const length = ibanLength(head.slice(0, 2).toUpperCase());
    if (length === undefined) {
      yield undefined;
      continue;
    }
    let value = '';
    let end = start;
    while (end < text.length && value.length < length) {
      const character = text[end] ?? '';
      if (/[A-Za-z0-9]/.test(character)) value += character.toUpperCase();
      else if (character !== ' ' || value.length % 4 !== 0) break;
      end += 1;
    }
    const isOver = !/[A-Za-z0-9]/.test(text[end] ?? '');
    yield isOver && ibanValid(value) ? { start, end, kind: 'iban', value } : undefined;
  }
}

const digitRun = /(?<![A-Za-z0-9])[0-9](?:[ -]?[0-9]){12,}(?![A-Za-z0-9])/g;
const cardDigits = { min: 13, max: 19 } as const;
/** So many show the network. */
const brandDigits = 6;

/** Of digits in groups, whole groups make a number: a date may follow it. Only numbers of card networks count. */
function* cardsIn(text: string): Generator<SearchedPlace> {
  for (const { index, 0: run } of text.matchAll(digitRun)) {
    const end = index + run.length;
    for (let at = index; at < end; at += 1) {
      // It begins with a group.
      if (at > index && isDigit(text, at - 1)) continue;
      const found = cardFrom(text, at, end);
      yield found;
      if (found) at = found.end;
    }
  }
}

/** The longest number that begins here, in a run of digits and single separators that ends at `end`. */
function cardFrom(text: string, start: number, end: number): SearchedPlace {
  let value = '';
  let found: SearchedPlace;
  for (let at = start; at < end && value.length < cardDigits.max; at += 1) {
    if (!isDigit(text, at)) continue;
    value += text[at];
    // Most numbers are of no network, and a sum of all digits costs more than to see that.
    if (value.length === brandDigits && cardBrand(value) === null) return undefined;
    const isGroup = at + 1 === end || !isDigit(text, at + 1);
    if (isGroup && value.length >= cardDigits.min && luhnValid(value)) {
      found = { start, end: at + 1, kind: 'card_number', value };
    }
  }
  return found;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

/** With separators: nine digits alone may be anything. */
const socialForm =
  /(?<![A-Za-z0-9-])(?!000|666|9)[0-9]{3}([- ])(?!00)[0-9]{2}\1(?!0000)[0-9]{4}(?![A-Za-z0-9-])/g;

function* socialNumbersIn(text: string): Generator<SearchedPlace> {
  for (const { index: start, 0: found } of text.matchAll(socialForm)) {
    const value = found.replaceAll(' ', '-');
    yield { start, end: start + found.length, kind: 'social_security_number', value };
  }
}
