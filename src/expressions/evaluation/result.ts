/** The result of an evaluation: JSON, or undefined. */
import { toValue } from 'liquidjs';
import type { Json } from '../../base/json.ts';
import { Bytes } from './bytes.ts';
import { ExpressionError } from './error.ts';

/**
 * Converts a value of the engine to JSON. Filters build lists but never objects, so an object is the
 * caller's data and is returned unchanged.
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

/** True for a string that V8 stores with two bytes per character, which it processes more slowly. */
export function isBeyondAscii(text: string): boolean {
  return beyondAscii.test(text);
}

/**
 * The notation of a value within a longer string: empty for null, numbers in their shortest decimal
 * form, objects and arrays as JSON.
 */
export function textOf(given: unknown): string {
  if (typeof given === 'string') return given;
  const value = jsonOf(given);
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
