/** Data with named properties, each by its own rule. */

import { invalid } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { isPropertyName, memberPath } from '../../expressions/attribute-path.ts';

export interface PropertyRule {
  readonly required: boolean;
  /** The form of a valid value, for messages to the caller. */
  readonly form: string;
  /** Gives the value as it is stored, or `undefined` when it is not one. */
  readonly parse: (value: Json) => Json | undefined;
}

/**
 * Reads an object of exactly these properties and gives them in the table's order. A property that
 * is null is one that was not sent.
 *
 * @throws VaultError 400 naming every property that is wrong.
 */
export function parseProperties(
  data: Json,
  rules: Readonly<Record<string, PropertyRule>>,
  form: string,
): JsonObject {
  if (!isObject(data)) throw invalid('data', form);
  const errors: Record<string, string[]> = {};
  const parsed: Record<string, Json> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const value = Object.hasOwn(data, name) ? (data[name] ?? null) : null;
    if (value === null) {
      if (rule.required) errors[memberPath('data', name)] = ['is required'];
      continue;
    }
    const kept = rule.parse(value);
    if (kept === undefined) errors[memberPath('data', name)] = [rule.form];
    else parsed[name] = kept;
  }
  for (const name of Object.keys(data)) {
    if (Object.hasOwn(rules, name)) continue;
    // A name that may be a value in the wrong place is not repeated.
    if (isPropertyName(name)) errors[memberPath('data', name)] = ['is not a property of this type'];
    else errors['data'] = ['must not have other properties'];
  }
  if (Object.keys(errors).length > 0) throw invalid(errors);
  return parsed;
}

const wholeNumberPattern = /^[0-9]{1,4}$/;

/** A whole number in the range, also if it was sent as a string such as `'02'`. */
export function wholeNumber(value: Json, least: number, most: number): number | undefined {
  const written = typeof value === 'string' && wholeNumberPattern.test(value);
  const number = written ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number)) return undefined;
  return number >= least && number <= most ? number : undefined;
}
