/** Conversions between kinds of values: the filters to_*, json_stringify, pad_* and card_exp. */
import { isObject, type Json } from '../../base/json.ts';
import { Bytes } from '../evaluation/bytes.ts';
import { ExpressionError } from '../evaluation/error.ts';
import { characterCount } from './mask.ts';

/** The value as JSON, except that a string stays as it is. */
export function toJsonText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new ExpressionError('to_string needs text, a number or a boolean');
}

const numberPattern = /^[+-]?(?:\d{1,400}(?:\.\d{1,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?$/;

export function toNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  const text = typeof value === 'string' ? value.trim() : '';
  const number = numberPattern.test(text) ? Number(text) : Number.NaN;
  if (Number.isInteger(number) ? Number.isSafeInteger(number) : Number.isFinite(number)) {
    return number;
  }
  throw new ExpressionError(
    'to_number needs decimal text that a number can hold without losing digits',
  );
}

export function toBoolean(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new ExpressionError("to_boolean needs 'true' or 'false'");
}

/** The padding that is missing to reach `length` characters. A longer string is never cut. */
export function padding(text: string, length: number, character: string): string {
  return character.repeat(length - characterCount(text, length));
}

const expiryPartPattern = /YYYY|YY|MM/g;

/** Formats month and year by the pattern. `null` for a card without an expiry. */
export function cardExpiry(card: unknown, pattern: string): string | null {
  if (!isObject(card)) throw new ExpressionError('card_exp needs a card');
  const month = Object.hasOwn(card, 'expiration_month') ? card['expiration_month'] : null;
  const year = Object.hasOwn(card, 'expiration_year') ? card['expiration_year'] : null;
  if (month === null || year === null) return null;
  if (!inRange(month, 1, 12) || !inRange(year, 1000, 9999)) {
    throw new ExpressionError('card_exp needs a month from 1 to 12 and a year of four digits');
  }
  const parts: Record<string, string> = {
    YYYY: String(year),
    YY: String(year).slice(2),
    MM: String(month).padStart(2, '0'),
  };
  return pattern.replace(expiryPartPattern, (part) => parts[part] ?? part);
}

export function saysExpiry(pattern: string): boolean {
  return pattern.search(expiryPartPattern) >= 0;
}

export function bytesOf(value: unknown, filter: string): Buffer {
  if (value instanceof Bytes) return Buffer.from(value.reveal());
  throw new ExpressionError(`${filter} needs bytes, such as the result of hmac`);
}

function inRange(value: Json | undefined, least: number, most: number): value is number {
  return Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
}
