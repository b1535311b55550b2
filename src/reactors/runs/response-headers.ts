/** Headers that code sets on a message, restricted to those that HTTP can send. */
import { isObject, type Json } from '../../base/json.ts';

const nameForm = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
/** Visible ASCII and spaces, because parsers disagree on all other characters. */
const valueForm = /^[\t\x20-\x7e]{0,8000}$/;

/**
 * `undefined` unless all headers can be sent. Numbers and lists of strings are converted to strings. Of names that
 * differ in case alone the last stays: code sets a header after it has copied those of the caller, who must not be able
 * to send another one beside it by spelling its name otherwise.
 */
export function headersOfCode(given: Json): Readonly<Record<string, string>> | undefined {
  if (given === null) return {};
  if (!isObject(given)) return undefined;
  const entries = Object.entries(given).map(([name, value]) => [name, textOf(value)] as const);
  const isSendable = entries.every(
    ([name, value]) => nameForm.test(name) && value !== undefined && valueForm.test(value),
  );
  if (!isSendable) return undefined;
  const last = new Map(entries.map(([name], at) => [name.toLowerCase(), at]));
  const kept = entries.filter(([name], at) => last.get(name.toLowerCase()) === at);
  return Object.fromEntries(kept) as Record<string, string>;
}

function textOf(value: Json): string | undefined {
  if (Array.isArray(value)) return value.every(isText) ? value.join(', ') : undefined;
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

const isText = (value: Json): boolean => typeof value === 'string';
