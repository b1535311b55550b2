/** What leaves an evaluation: JSON, or nothing. */
import { toValue } from 'liquidjs';
import type { Json } from '../../base/json.ts';
import { Bytes } from './bytes.ts';
import { ExpressionError } from './error.ts';

/**
 * The JSON that an engine's value stands for. Filters build lists but never objects, so an object
 * is the caller's data and is given as it is.
 */
export function jsonOf(given: unknown): Json | undefined {
  const value: unknown = toValue(given);
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
    throw new ExpressionError('gives a number that JSON cannot hold');
  }
  if (Array.isArray(value)) return value.map((member) => jsonOf(member) ?? null);
  if (value instanceof Bytes) return value.toString();
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
    throw new ExpressionError('gives a value that JSON cannot hold');
  }
  return value as Json | undefined;
}

const beyondAscii = /[^\p{ASCII}]/u;

/** True for text that V8 takes longer for, of which a body has room for half as many characters. */
export function isBeyondAscii(text: string): boolean {
  return beyondAscii.test(text);
}

/**
 * How a value is written between other text: nothing for null, numbers in their shortest decimal
 * form, objects and arrays as JSON.
 */
export function textOf(given: unknown): string {
  if (typeof given === 'string') return given;
  const value = jsonOf(given);
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
