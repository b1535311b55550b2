/** Random look-alikes: the filters alias_card, alias_preserve_format and alias_preserve_length. */
import { cardBin, luhnValid } from '../../base/checks.ts';
import { type Random, randomBelow } from '../../base/random.ts';
import { ExpressionError } from '../evaluation/error.ts';
import {
  indexFromEnd,
  indexFromStart,
  replaceCharacters,
  separatorsWith,
  withoutCharacters,
} from './mask.ts';

const digits = '0123456789';
const letters = 'abcdefghijklmnopqrstuvwxyz';
const alphanumerics = letters + digits;

const letterPattern = /\p{L}/u;
const digitPattern = /\p{Nd}/u;

export interface PreservedCharacters {
  readonly first: number;
  readonly last: number;
}

/** Letters become letters, digits become digits, everything else and both ends stay. */
export function aliasPreservingFormat(
  text: string,
  preserved: PreservedCharacters,
  random: Random,
): string {
  return replaceBetween(text, preserved, (character) => {
    if (letterPattern.test(character)) return pick(letters, random);
    return digitPattern.test(character) ? pick(digits, random) : undefined;
  });
}

/** Every character but the ends becomes a letter or a digit. */
export function aliasPreservingLength(
  text: string,
  preserved: PreservedCharacters,
  random: Random,
): string {
  return replaceBetween(text, preserved, () => pick(alphanumerics, random));
}

export interface KeptDigits {
  readonly bin: boolean;
  readonly last4: boolean;
}

/**
 * A number that looks like the card's. It never passes the Luhn check, so that no alias can be a real
 * card number or be taken for one, and it never equals the number it stands for.
 */
export function aliasCard(text: string, { bin, last4 }: KeptDigits, random: Random): string {
  const number = withoutCharacters(text, separatorsWith(''));
  if (!/^[0-9]+$/.test(number)) throw new ExpressionError('alias_card needs a card number');
  const first = bin ? cardBin(number).length : 0;
  const lastAt = number.length - (last4 ? 4 : 0);
  if (first >= lastAt) {
    throw new ExpressionError('alias_card needs a number longer than what it reveals');
  }
  let alias = number.slice(0, first);
  while (alias.length < lastAt - 1) alias += pick(digits, random);
  const rest = number.slice(lastAt);
  const candidates = [...digits]
    .map((digit) => alias + digit + rest)
    .filter((candidate) => candidate !== number && !luhnValid(candidate));
  return inPlaceOf(text, candidates[randomBelow(random, candidates.length)] ?? '');
}

/** Replaces the digits of the string. */
function inPlaceOf(text: string, number: string): string {
  let position = 0;
  return text.replace(/[0-9]/g, () => {
    position += 1;
    return number[position - 1] ?? '';
  });
}

function replaceBetween(
  text: string,
  { first, last }: PreservedCharacters,
  replace: (character: string) => string | undefined,
): string {
  const range = { from: indexFromStart(text, first), to: indexFromEnd(text, last) };
  let replaced = 0;
  const alias = replaceCharacters(text, range, (character) => {
    const other = replace(String.fromCodePoint(character));
    if (other === undefined) return character;
    replaced += 1;
    return other.charCodeAt(0);
  });
  if (replaced === 0) throw new ExpressionError('an alias must replace at least one character');
  return alias;
}

function pick(alphabet: string, random: Random): string {
  return alphabet[randomBelow(random, alphabet.length)] ?? '';
}
