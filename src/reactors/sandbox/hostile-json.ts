/** Parses JSON from a process that an attacker may control. */
import { isNestedDeeper } from '../../base/json.ts';
import { nestingMax, valuesMax } from './limits.ts';

/** Extra levels for the message around a result, and for a request around a body. */
const envelopeLevels = 4;

/**
 * `undefined` for bytes that are not JSON or are nested too deep. Members named `__proto__` are dropped, because
 * copying such a value later could set a prototype.
 */
export function parseHostile(bytes: Buffer): { readonly value: unknown } | undefined {
  if (isNestedDeeper(bytes, nestingMax + envelopeLevels)) return undefined;
  if (hasMoreValues(bytes, valuesMax)) return undefined;
  const text = bytes.toString();
  try {
    return { value: mayName(text) ? JSON.parse(text, withoutPrototype) : JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const beginnings = new Set([...',[{'].map((character) => character.charCodeAt(0)));

/**
 * Counts commas and opening brackets outside strings; an object in a list counts as two. A megabyte of empty objects
 * takes fifty times longer to parse than a megabyte of text.
 */
function hasMoreValues(bytes: Buffer, most: number): boolean {
  if (bytes.length < most) return false;
  let values = 1;
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) isText = !isText;
    else if (isText) at += byte === backslash ? 1 : 0;
    else if (beginnings.has(byte)) values += 1;
    if (values > most) return true;
  }
  return false;
}

function mayName(text: string): boolean {
  return text.includes('__proto__') || /\\u00(?:5f|6f|7[024])/i.test(text);
}

function withoutPrototype(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}
