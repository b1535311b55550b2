/** Filters that hide most of a string: reveal, reveal_last, card_mask and last4. */
import { cardBin } from '../../base/checks.ts';

/** The separators between the digits of a card number. */
const cardSeparators = ' -';

const hyphen = codePointOf('-');
const noCharacters: ReadonlySet<number> = new Set();
const cardSeparatorsAlone = codePointsOf(cardSeparators);

/**
 * Keeps the last `count` characters and all hyphens, and replaces the rest. A string of at most
 * `count` characters is returned whole, as the public product does.
 */
export function revealLast(text: string, count: number, mask: string): string {
  const hidden = { from: 0, to: indexFromEnd(text, count) };
  const masked = codePointOf(mask);
  return replaceCharacters(text, hidden, (character) => (character === hyphen ? hyphen : masked));
}

/** The last `count` characters. */
export function last(text: string, count: number): string {
  return text.slice(indexFromEnd(text, count));
}

export interface RevealedEnds {
  readonly first: number;
  readonly last: number;
  readonly mask: string;
  readonly preserved: string;
}

/** Keeps both ends and the preserved characters. Hides everything where that would hide nothing. */
export function reveal(text: string, { first, last, mask, preserved }: RevealedEnds): string {
  const from = indexFromStart(text, first);
  const to = indexFromEnd(text, last);
  const other = codePointOf(mask);
  const kept = preserved === '' ? noCharacters : codePointsOf(preserved);
  const masked = replaceCharacters(text, { from, to }, (character) =>
    kept.has(character) ? character : other,
  );
  return from >= to || masked === text ? maskOf(text, mask) : masked;
}

export interface RevealedCard {
  readonly bin: boolean;
  readonly last4: boolean;
  readonly mask: string;
  readonly preserved: string;
}

/** Keeps the issuer's digits, the last four, or both. Separators do not count as digits. */
export function cardMask(text: string, { bin, last4, mask, preserved }: RevealedCard): string {
  const other = codePointOf(mask);
  const kept = preserved === '' ? noCharacters : codePointsOf(preserved);
  const separators = separatorsWith(preserved);
  const number = withoutCharacters(text, separators);
  const first = bin ? cardBin(number).length : 0;
  const lastAt = characterCount(number, number.length) - (last4 ? 4 : 0);
  let position = -1;
  const masked = replaceCharacters(text, { from: 0, to: text.length }, (character) => {
    if (separators.has(character)) return kept.has(character) ? character : other;
    position += 1;
    return position < first || position >= lastAt ? character : other;
  });
  return first >= lastAt || masked === text ? maskOf(text, mask) : masked;
}

/** The range of replaced characters, in code units. */
export interface MaskedRange {
  readonly from: number;
  readonly to: number;
}

/** Returned in place of a character that is removed. */
const nothing = -1;

const unitsMax = 4096;
/** A buffer of code units that all calls share, because none of them waits while it uses the buffer. */
const units = new Uint16Array(unitsMax);
const wide = Buffer.from(units.buffer);
const narrow = Buffer.alloc(unitsMax);

/**
 * The string with the code points of a range replaced by the result of `replace`. They are written as
 * numbers, because a string for each of them takes several times as long.
 */
export function replaceCharacters(
  text: string,
  { from, to }: MaskedRange,
  replace: (character: number) => number,
): string {
  let replaced = text.slice(0, from);
  let count = 0;
  let bits = 0;
  let at = from;
  while (at < to) {
    const pair = isPair(text, at);
    const character = pair ? (text.codePointAt(at) as number) : text.charCodeAt(at);
    at += pair ? 2 : 1;
    const written = replace(character);
    if (written > 0xffff) {
      units[count] = 0xd800 + ((written - 0x10000) >> 10);
      units[count + 1] = 0xdc00 + (written & 0x3ff);
      count += 2;
      bits |= 0xffff;
    } else if (written !== nothing) {
      units[count] = written;
      count += 1;
      bits |= written;
    }
    if (count > unitsMax - 2 || at >= to) {
      replaced += unitsAsText(count, bits);
      count = 0;
      bits = 0;
    }
  }
  return replaced + text.slice(at);
}

/** As a string of one byte per character where possible, which takes half the memory. */
function unitsAsText(count: number, bits: number): string {
  if (bits > 0xff) return wide.toString('utf16le', 0, 2 * count);
  narrow.set(units.subarray(0, count));
  return narrow.toString('latin1', 0, count);
}

/** The separators between the digits of a card number, including less common ones. */
export function separatorsWith(others: string): ReadonlySet<number> {
  return others === '' ? cardSeparatorsAlone : codePointsOf(cardSeparators + others);
}

export function withoutCharacters(text: string, removed: ReadonlySet<number>): string {
  const whole = { from: 0, to: text.length };
  return replaceCharacters(text, whole, (character) =>
    removed.has(character) ? nothing : character,
  );
}

function codePointOf(character: string): number {
  return character.codePointAt(0) ?? nothing;
}

function codePointsOf(characters: string): ReadonlySet<number> {
  return new Set(Array.from(characters, codePointOf));
}

function maskOf(text: string, mask: string): string {
  return mask.repeat(characterCount(text, text.length));
}

/** The number of characters in a string, counted up to `most`. */
export function characterCount(text: string, most: number): number {
  let count = 0;
  for (let at = 0; at < text.length && count < most; count += 1) at += isPair(text, at) ? 2 : 1;
  return count;
}

export function indexFromStart(text: string, count: number): number {
  let index = 0;
  for (let left = count; left > 0 && index < text.length; left -= 1) {
    index += isPair(text, index) ? 2 : 1;
  }
  return index;
}

export function indexFromEnd(text: string, count: number): number {
  let index = text.length;
  for (let left = count; left > 0 && index > 0; left -= 1) {
    index -= index >= 2 && isPair(text, index - 2) ? 2 : 1;
  }
  return index;
}

/** True when two code units at `index` are one character outside the basic plane. */
function isPair(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  if (code < 0xd800 || code > 0xdbff) return false;
  const next = text.charCodeAt(index + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}
