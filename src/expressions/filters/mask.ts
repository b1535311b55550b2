/** Hiding most of a text: the filters reveal, reveal_last, card_mask and last4. */
import { cardBin } from '../../lib/checks.ts';

/** What separates the digits of a card number. */
export const cardSeparators = ' -';

/**
 * Keeps the last `count` characters, replaces the rest, and keeps hyphens where they are. A text
 * of no more than `count` characters is given whole, as the public product does.
 */
export function revealLast(text: string, count: number, mask: string): string {
  const hidden = { from: 0, to: indexFromEnd(text, count) };
  return replaceCharacters(text, hidden, (character) => (character === '-' ? undefined : mask));
}

/** The last `count` characters. */
export function last(text: string, count: number): string {
  return text.slice(indexFromEnd(text, count));
}

export interface Revealed {
  readonly first: number;
  readonly last: number;
  readonly mask: string;
  readonly preserved: string;
}

/** Keeps both ends and the preserved characters; hides everything when that would hide nothing. */
export function reveal(text: string, { first, last, mask, preserved }: Revealed): string {
  const from = indexFromStart(text, first);
  const to = indexFromEnd(text, last);
  const kept = preserved === '' ? undefined : new Set(preserved);
  const masked = replaceCharacters(text, { from, to }, (character) =>
    kept?.has(character) ? undefined : mask,
  );
  return from >= to || masked === text ? maskOf(text, mask) : masked;
}

export interface RevealedCard {
  readonly bin: boolean;
  readonly last4: boolean;
  readonly mask: string;
  readonly preserved: string;
}

/** Keeps the issuer's digits, the last four, or both; separators count for neither. */
export function cardMask(text: string, { bin, last4, mask, preserved }: RevealedCard): string {
  const whole = { from: 0, to: text.length };
  const kept = new Set(preserved);
  const separators = new Set(cardSeparators + preserved);
  let count = 0;
  const number = replaceCharacters(text, whole, (character) => {
    if (separators.has(character)) return '';
    count += 1;
    return undefined;
  });
  const first = bin ? cardBin(number).length : 0;
  const lastAt = count - (last4 ? 4 : 0);
  let position = -1;
  const masked = replaceCharacters(text, whole, (character) => {
    if (separators.has(character)) return kept.has(character) ? undefined : mask;
    position += 1;
    return position < first || position >= lastAt ? undefined : mask;
  });
  return first >= lastAt || masked === text ? maskOf(text, mask) : masked;
}

/** Where characters are replaced, in code units. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * The text with characters of a range replaced, where `replace` gives something. Without a list of the
 * characters, which would take several times as long.
 */
export function replaceCharacters(
  text: string,
  { from, to }: Range,
  replace: (character: string) => string | undefined,
): string {
  let replaced = '';
  let keptFrom = 0;
  for (let at = from, next = at; at < to; at = next) {
    next = isPair(text, at) ? at + 2 : at + 1;
    const other = replace(text.slice(at, next));
    if (other === undefined) continue;
    if (keptFrom < at) replaced += text.slice(keptFrom, at);
    replaced += other;
    keptFrom = next;
  }
  return replaced + text.slice(keptFrom);
}

export function withoutCharacters(text: string, characters: ReadonlySet<string>): string {
  const whole = { from: 0, to: text.length };
  return replaceCharacters(text, whole, (character) =>
    characters.has(character) ? '' : undefined,
  );
}

function maskOf(text: string, mask: string): string {
  return mask.repeat(characterCount(text, text.length));
}

/** Characters in a text, counted no further than up to `most`. */
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
