/** JSON from a process that may belong to an attacker. */
import { isNestedDeeper } from '../lib/json.ts';
import { nestingMax } from './limits.ts';

/** Of a result within the message that carries it, and of a body within a request. */
const envelopeLevels = 4;

/**
 * `undefined` for what is not JSON or is nested too deep. Members named `__proto__` are left out: whoever
 * copies a value later might set a prototype by one.
 */
export function parseHostile(bytes: Buffer): { readonly value: unknown } | undefined {
  if (isNestedDeeper(bytes, nestingMax + envelopeLevels)) return undefined;
  const text = bytes.toString();
  try {
    return { value: mayName(text) ? JSON.parse(text, withoutPrototype) : JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function mayName(text: string): boolean {
  return text.includes('__proto__') || /\\u00(?:5f|6f|7[024])/i.test(text);
}

function withoutPrototype(key: string, value: unknown): unknown {
  return key === '__proto__' ? undefined : value;
}
