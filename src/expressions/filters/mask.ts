/** Hiding most of a text: the filters reveal, reveal_last, card_mask and last4. */
import { cardBin } from '../../lib/checks.ts';

/** What separates the digits of a card number. */
export const cardSeparators = ' -';

/**
 * Keeps the last `count` characters, replaces the rest, and keeps hyphens where they are. A text
 * of no more than `count` characters is given whole, as the public product does.
 */
export function revealLast(text: string, count: number, mask: string): string {
  const revealedAt = indexFromEnd(text, count);
  let masked = '';
  for (let index = 0; index < revealedAt; index += 1) {
    if (text[index] === '-') masked += '-';
    else masked += mask;
    if (isPair(text, index)) index += 1;
  }
  return masked + text.slice(revealedAt);
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
  const characters = [...text];
  const lastAt = characters.length - last;
  const kept = new Set(preserved);
  const masked = characters.map((character, index) =>
    index < first || index >= lastAt || kept.has(character) ? character : mask,
  );
  if (first >= lastAt || masked.every((character, index) => character === characters[index])) {
    return mask.repeat(characters.length);
  }
  return masked.join('');
}

export interface RevealedCard {
  readonly bin: boolean;
  readonly last4: boolean;
  readonly mask: string;
  readonly preserved: string;
}

/** Keeps the issuer's digits, the last four, or both; separators count for neither. */
export function cardMask(text: string, { bin, last4, mask, preserved }: RevealedCard): string {
  const characters = [...text];
  const kept = new Set(preserved);
  const separators = new Set(cardSeparators + preserved);
  const digits = characters.filter((character) => !separators.has(character));
  const first = bin ? cardBin(digits.join('')).length : 0;
  const lastAt = digits.length - (last4 ? 4 : 0);
  let position = -1;
  const masked = characters.map((character) => {
    if (separators.has(character)) return kept.has(character) ? character : mask;
    position += 1;
    return position < first || position >= lastAt ? character : mask;
  });
  const hidesNothing = first >= lastAt || masked.join('') === text;
  return hidesNothing ? mask.repeat(characters.length) : masked.join('');
}

function indexFromEnd(text: string, count: number): number {
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
