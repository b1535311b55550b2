/** JSON values from callers, and the traversals of these values and their bytes. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** The maximum nesting of a request body; the root is level 1. */
export const nestingMax = 64;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the reason why a parsed value cannot be stored unchanged, or `undefined`. It may be nested deeper than
 * {@link nestingMax}, or hold a number that a double cannot represent: an integer beyond 2^53 - 1, or 1e400. RFC 8259
 * section 6 leaves those to the implementation. A vault that silently rounded one would lose data. The response names
 * no place inside the value, because keys of data are data.
 */
export function flawOf(value: Json, level = 1): string | undefined {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 'must not contain a number beyond the range of doubles';
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return undefined;
    return 'must not contain an integer beyond 2^53 - 1, which would lose digits; send it as a string';
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (level > nestingMax) return `must not be nested deeper than ${nestingMax} levels`;
  const members = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) {
    const flaw = flawOf(member, level + 1);
    if (flaw !== undefined) return flaw;
  }
  return undefined;
}

const blank = 0x20;
const quote = 0x22;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

const comma = 0x2c;

export interface JsonLimits {
  readonly levelsMax: number;
  /** Members of lists and objects together, at any depth. */
  readonly membersMax: number;
}

/**
 * Returns which limit JSON exceeds. It reads only the bytes, because JSON with too many members must not be parsed.
 * If both limits are exceeded, it returns the one of members. For bytes that are not JSON, the result is undefined.
 */
export function exceededLimit(
  bytes: Uint8Array,
  { levelsMax, membersMax }: JsonLimits,
): keyof JsonLimits | undefined {
  // Each level has two brackets, so most bodies need no scan.
  if (bytes.length < 2 * (levelsMax + 1) && bytes.length < 2 * membersMax) return undefined;
  let level = 0;
  let isDeeper = false;
  let members = 0;
  /** Whether a bracket has opened a list or an object that has no member yet. */
  let hasOpened = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte <= blank) continue;
    const isEnd = byte === closeList || byte === closeObject;
    if (byte === comma || (hasOpened && !isEnd)) {
      members += 1;
      if (members > membersMax) return 'membersMax';
    }
    hasOpened = false;
    if (byte === quote) {
      at = endOfText(bytes, at);
    } else if (byte === openList || byte === openObject) {
      hasOpened = true;
      level += 1;
      if (level > levelsMax) isDeeper = true;
    } else if (isEnd) {
      level -= 1;
    }
  }
  return isDeeper ? 'levelsMax' : undefined;
}

/** True for JSON with more levels than `levelsMax`. For bytes that are not JSON, the result is undefined. */
export function isNestedDeeper(bytes: Uint8Array, levelsMax: number): boolean {
  const limits = { levelsMax, membersMax: Number.POSITIVE_INFINITY };
  return exceededLimit(bytes, limits) === 'levelsMax';
}

function endOfText(bytes: Uint8Array, begin: number): number {
  let at = begin + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/**
 * Canonical JSON without white space. Keys are sorted by UTF-16 code units at every level, as
 * `fast-json-stable-stringify` and others do. A copy with sorted keys is not enough, because objects list keys that
 * look like integers first.
 */
export function sortedJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  const members = Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${sortedJson(member)}`);
  return `{${members.join(',')}}`;
}

/** Characters that JSON does not escape: printable ASCII without quotes and backslashes. */
const plainForm = /^[ !#-[\]-~]*$/;

/**
 * `JSON.stringify` of a string, optimized for strings without escapes. Frequent lists and objects are concatenated
 * from these, because V8 allocates 8 KiB for each list or object that it serializes.
 */
export function jsonText(text: string): string {
  return plainForm.test(text) ? `"${text}"` : JSON.stringify(text);
}
