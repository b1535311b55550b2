/** What a mask shows of a value, by which guesses are counted: equal for all values that look alike when masked. */
import { isObject, type Json } from '../../lib/json.ts';
import { summaryOfCard } from '../../values/card.ts';
import type { Contents } from '../../values/contents.ts';
import { type TokenTypeName, tokenTypes } from '../../values/token-types.ts';

/** Runs of digits in free text that are shorter, such as dates and postal codes, are no secrets that masks hide. */
const hiddenDigitsMin = 9;

/** The shortest number in a search that a mask would shorten. */
const searchedDigitsMin = 5;

const cardDigitsMin = 13;

const digitRuns = /\d(?:[ -]?\d)*/g;

type Visible = (data: Json) => string | undefined;

const visibleByType: Readonly<Record<TokenTypeName, Visible>> = {
  card: visibleCard,
  network_token: visibleCard,
  card_number: visibleCard,
  bank: visibleBank,
  us_bank_account_number: lastFour,
  social_security_number: lastFour,
  employer_id_number: lastFour,
  // Banks publish theirs.
  us_bank_routing_number: () => undefined,
  token: () => undefined,
};

/**
 * What a mask shows of the data, and of the text of which its fingerprint is made, where that is another. Empty for
 * contents of which a mask hides no digits.
 */
export function visibleDigits(
  { type, data, fingerprintExpression = tokenTypes[type].fingerprint }: Contents,
  fingerprinted: string,
): readonly string[] {
  const isOwn = type === 'token' || fingerprintExpression !== tokenTypes[type].fingerprint;
  const text = isOwn ? visibleText(fingerprinted, hiddenDigitsMin) : undefined;
  return [visibleByType[type](data), text].filter((one) => one !== undefined);
}

/** The same for a value that is searched for. */
export function visibleInSearch(value: string): string | undefined {
  return visibleText(value, searchedDigitsMin);
}

function visibleCard(data: Json): string {
  const { bin, last4 } = summaryOfCard(data);
  return `card ${String(bin)} ${String(last4)}`;
}

function visibleBank(data: Json): string | undefined {
  if (!isObject(data)) return undefined;
  return `${String(data['routing_number'])} ${lastFour(data['account_number'] ?? null)}`;
}

function lastFour(data: Json): string | undefined {
  return typeof data === 'string' && data.length > 4 ? `account ${data.slice(-4)}` : undefined;
}

/** All of the text but the digits that a mask of its numbers would hide; `undefined` where it hides none. */
function visibleText(text: string, hiddenMin: number): string | undefined {
  let hidden = false;
  const shown = text.replace(digitRuns, (run) => {
    const digits = run.replace(/\D/g, '');
    if (digits.length < hiddenMin) return run;
    hidden = true;
    if (digits.length < cardDigitsMin) return `*${digits.slice(-4)}`;
    const { bin, last4 } = summaryOfCard(digits);
    return `${String(bin)}*${String(last4)}`;
  });
  return hidden ? `text ${shown}` : undefined;
}
