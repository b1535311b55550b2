/**
 * Recognizes the type of data. A caller declares the type of the data that it sends; for data that another party
 * encrypted, the declared type would let that caller choose which rules decide.
 */

import { cardBrand, luhnValid } from '../../base/checks.ts';
import type { Container } from '../../base/container.ts';
import { isObject, type Json } from '../../base/json.ts';
import { parseAccountNumber, parseRoutingNumber } from './bank.ts';
import { type TokenTypeName, tokenTypes } from './token-types.ts';

/** Types whose data has check digits. Other data cannot be recognized. */
export type RecognizedType = 'card_number' | 'bank';

/**
 * From 12 to 19 digits, as cards have them, alone or in a string, also as people write them in groups. The first form
 * accepts any groups. The others find the usual groups also next to other numbers, such as a date. On the track
 * of a card a B precedes its number.
 */
const cardNumbers = [
  /(?<![\w-])(\d(?:[\p{Zs}-]?\d){11,18})(?![\w-])/gu,
  /(?:(?<![\w-])|(?<=%B))(?=(\d{12,19})(?![\w-]))/gu,
  /(?<![\w-])(?=(\d{4}([\p{Zs}-])\d{4}\2\d{4}\2\d{4})(?![\w-]))/gu,
  /(?<![\w-])(?=(\d{4}([\p{Zs}-])\d{6}\2\d{4,5})(?![\w-]))/gu,
];

/**
 * The types that are recognized anywhere in the data. About every tenth number of 12 to 19 digits passes the
 * check of cards, so an account number may be recognized as a card number, too.
 */
export function recognizedIn(data: Json): readonly RecognizedType[] {
  const found = new Set<RecognizedType>();
  const waiting: Json[] = [data];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (hasCardNumber(value)) found.add('card_number');
    if (isObject(value) && isBank(value)) found.add('bank');
    if (typeof value === 'object' && value !== null) {
      for (const member of Object.values(value)) waiting.push(member as Json);
    }
  }
  return [...found].toSorted();
}

/**
 * The containers whose rules decide about data that its caller did not send in the clear: that of the declared
 * type, and those of the recognized types. The caller needs the permission in all of them.
 */
export function containersOf(
  type: TokenTypeName,
  recognized: readonly RecognizedType[],
): readonly Container[] {
  return [...new Set([type, ...recognized].map((one) => tokenTypes[one].container))];
}

/** As a JSON number only with the first digits of a known brand: times in milliseconds have 13 digits. */
function hasCardNumber(value: Json): boolean {
  if (typeof value === 'number') {
    const digits = String(value);
    return isCardNumber(digits) && cardBrand(digits) !== null;
  }
  if (typeof value !== 'string') return false;
  return cardNumbers.some((form) =>
    value.matchAll(form).some(([, digits = '']) => isCardNumber(digits.replace(/\D/g, ''))),
  );
}

function isCardNumber(digits: string): boolean {
  return /^\d{12,19}$/.test(digits) && luhnValid(digits);
}

function isBank(data: { readonly [name: string]: Json }): boolean {
  const { routing_number: routing = null, account_number: account = null } = data;
  return parseRoutingNumber(routing) !== undefined && parseAccountNumber(account) !== undefined;
}
