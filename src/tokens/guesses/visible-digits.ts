/** The digits that a mask shows, with which guesses are counted: equal for all values that look alike when masked. */
import { isObject, type Json } from '../../base/json.ts';
import { summaryOfCard } from '../contents/card.ts';
import type { Contents } from '../contents/contents.ts';
import { type TokenTypeName, tokenTypes } from '../contents/token-types.ts';

/** Fewer digits in free text, such as dates and postal codes, are not secrets that masks hide. */
const hiddenDigitsMin = 9;

/** The shortest number that a mask would shorten, if a caller chooses what is fingerprinted or searched for. */
const chosenDigitsMin = 5;

const cardDigitsMin = 13;

/** Most masks show the last four digits, and some show all but these. */
const shownLast = 4;

/** Whatever is written between the digits of a number. */
const digitRuns = /\d(?:[^\p{L}\p{N}]?\d)*/gu;

/** What different masks show of one value, each a name of its own. */
type Visible = (data: Json) => readonly string[];

const nothing: Visible = () => [];

const visibleByType: Readonly<Record<TokenTypeName, Visible>> = {
  card: visibleCard,
  network_token: visibleCard,
  card_number: visibleCard,
  bank: visibleBank,
  us_bank_account_number: (data) => visibleNumber('account', data),
  social_security_number: (data) => visibleNumber('account', data),
  employer_id_number: (data) => visibleNumber('account', data),
  // Banks publish theirs.
  us_bank_routing_number: nothing,
  token: nothing,
};

/**
 * The digits that masks show of the data, and of the fingerprinted string if it is a different one: such a string
 * may leave out the visible parts of the data, so that each guess could have different ones. Empty for contents
 * of which a mask hides no digits.
 */
export function visibleDigits(
  { type, data, fingerprintExpression }: Contents,
  fingerprinted: string,
): readonly string[] {
  const usual = tokenTypes[type].fingerprint;
  const isChosen = fingerprintExpression !== undefined && fingerprintExpression !== usual;
  if (isChosen)
    return [...visibleByType[type](data), ...visibleText(fingerprinted, chosenDigitsMin)];
  return type === 'token' ? visibleText(fingerprinted, hiddenDigitsMin) : visibleByType[type](data);
}

/** The same for a value that is searched for. */
export function visibleInSearch(value: string): readonly string[] {
  return visibleText(value, chosenDigitsMin);
}

function visibleCard(data: Json): readonly string[] {
  const number = digitsOf(isObject(data) ? (data['number'] ?? null) : data);
  const { bin, last4 } = summaryOfCard(number);
  return [`card ${String(bin)} ${String(last4)}`, `card ${number.slice(0, -shownLast)}`];
}

function visibleBank(data: Json): readonly string[] {
  if (!isObject(data)) return [];
  const routing = digitsOf(data['routing_number'] ?? null);
  return visibleNumber(`${routing} account`, data['account_number'] ?? null);
}

/** Without the separators of its digits: two spellings are one number. */
function visibleNumber(kind: string, data: Json): readonly string[] {
  const digits = digitsOf(data);
  if (digits.length <= shownLast) return [];
  return [`${kind} *${digits.slice(-shownLast)}`, ...withoutEnd(digits, kind)];
}

/**
 * The digits of a string that masks show, if they hide some: of each of its numbers, and as if all its digits were one
 * number. Everything but digits is left out, since a guess cannot vary it and still be right.
 */
function visibleText(text: string, hiddenMin: number): readonly string[] {
  const ascii = withAsciiDigits(text);
  const digits = ascii.replace(/\D/g, '');
  if (digits.length < hiddenMin) return [];
  const runs = ascii.match(digitRuns) ?? [];
  const numbers = runs.map((run) => run.replace(/\D/g, ''));
  const shown = numbers.map((run) => (run.length < hiddenMin ? run : shortened(run)));
  const names = new Set([shown.join('|'), shortened(digits)]);
  return [...[...names].map((name) => `text ${name}`), ...withoutEnd(digits, 'text')];
}

/** For short numbers the remaining digits would be equal for many values. */
function withoutEnd(digits: string, kind: string): readonly string[] {
  if (digits.length < hiddenDigitsMin) return [];
  return [`${kind} ${digits.slice(0, -shownLast)}*`];
}

function shortened(digits: string): string {
  if (digits.length < cardDigitsMin) return `*${digits.slice(-shownLast)}`;
  const { bin, last4 } = summaryOfCard(digits);
  return `${String(bin)}*${String(last4)}`;
}

function digitsOf(data: Json): string {
  const isText = typeof data === 'string' || typeof data === 'number';
  return isText ? withAsciiDigits(String(data)).replace(/\D/g, '') : '';
}

const foreignDigits = /[^\P{Nd}0-9]/gu;

/** Decimal digits of all scripts as ASCII digits. Each is computed once, since a text may have very many of one. */
function withAsciiDigits(text: string): string {
  const known = new Map<string, string>();
  return text.replace(foreignDigits, (digit) => {
    const value = known.get(digit) ?? String(valueOfDigit(digit));
    known.set(digit, value);
    return value;
  });
}

const isDecimal = /^\p{Nd}$/u;

/** Unicode assigns decimal digits from zero to nine next to one another, and such rows may follow one another. */
function valueOfDigit(digit: string): number {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (isDecimal.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return (code - zero) % 10;
}
