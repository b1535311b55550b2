/** The card object: which numbers, dates and codes it may hold, and how they are stored. */
import { cardBin, cardBrand, luhnValid } from '../../base/checks.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { type PropertyRule, parseProperties, wholeNumber } from './structured-data.ts';

const numberPattern = /^[0-9]{13,19}$/;
const codePattern = /^[0-9]{3,4}$/;

export const cardNumberForm = 'must be a card number of 13 to 19 digits that passes the Luhn check';

/** The number when it may be a card's; the caller removes separators. */
export function parseCardNumber(value: Json): string | undefined {
  return typeof value === 'string' && numberPattern.test(value) && luhnValid(value)
    ? value
    : undefined;
}

/** In the order in which a card is stored and shown. */
const rules: Readonly<Record<string, PropertyRule>> = {
  number: { required: true, form: cardNumberForm, parse: parseCardNumber },
  expiration_month: {
    required: false,
    form: 'must be a month from 1 to 12',
    parse: (value) => wholeNumber(value, 1, 12),
  },
  expiration_year: {
    required: false,
    form: 'must be a year from 2000 to 2099',
    parse: (value) => wholeNumber(value, 2000, 2099),
  },
  cvc: { required: false, form: 'must be a string of 3 or 4 digits', parse: parseCode },
};

export const cardProperties: readonly string[] = Object.keys(rules);

/** @throws VaultError 400 naming every property that is wrong. */
export function parseCard(data: Json): JsonObject {
  return parseProperties(data, rules, 'must be a card object with the property "number"');
}

/** What may be shown of a card: never more than its issuer's digits and its last four. */
export function summaryOfCard(data: Json): JsonObject {
  const card: JsonObject = isObject(data) ? data : { number: data };
  const number = typeof card['number'] === 'string' ? card['number'] : '';
  const brand = cardBrand(number);
  const month = card['expiration_month'];
  const year = card['expiration_year'];
  return {
    bin: cardBin(number),
    last4: number.slice(-4),
    ...(typeof month === 'number' && { expiration_month: month }),
    ...(typeof year === 'number' && { expiration_year: year }),
    ...(brand !== null && { brand }),
  };
}

/** A code sent as a number has lost its leading zeros, which is why no number below 100 is one. */
function parseCode(value: Json): string | undefined {
  const text = typeof value === 'number' ? String(value) : value;
  return typeof text === 'string' && codePattern.test(text) ? text : undefined;
}
