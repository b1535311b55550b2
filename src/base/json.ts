/** JSON values as callers send them, and the walks the vault makes over them and their bytes. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json;
}

/** Nesting a request body may have; the root is level 1. */
export const nestingMax = 64;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Says why a parsed value cannot be kept as it was sent, or `undefined`: it is nested deeper than
 * {@link nestingMax}, or holds a number that a double cannot represent: an integer beyond 2^53 - 1,
 * or 1e400. RFC 8259 section 6 leaves those to the implementation; a vault that rounded one in
 * silence would lose what it was given to keep. The response names no place inside the value: keys of
 * data are data.
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
  /** Of lists and objects together, at any depth. */
  readonly membersMax: number;
}

/**
 * Which limit JSON exceeds, by its bytes alone: to parse what has too many members is what must not happen. Members
 * come first where both are exceeded. Bytes that are not JSON may give anything.
 */
export function exceededLimit(
  bytes: Uint8Array,
  { levelsMax, membersMax }: JsonLimits,
): keyof JsonLimits | undefined {
  // Each level is opened and closed, so that most bodies are not looked through at all.
  if (bytes.length < 2 * (levelsMax + 1) && bytes.length < 2 * membersMax) return undefined;
  let level = 0;
  let isDeeper = false;
  let members = 0;
  /** After the bracket that opens a list or an object, until its first member or its end. */
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

/** True of JSON with more levels than `levelsMax`. Bytes that are not JSON may give either. */
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
 * JSON of which the same value always has the same text, without white space. Keys are sorted by UTF-16 code units, at
 * every level, as `fast-json-stable-stringify` and others do. To write a copy with sorted keys would not be enough:
 * objects list keys that look like integers first.
 */
export function sortedJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  const members = Object.entries(value)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, member]) => `${JSON.stringify(key)}:${sortedJson(member)}`);
  return `{${members.join(',')}}`;
}

/** What JSON writes as it is: printable ASCII without quotes and backslashes. */
const plainForm = /^[ !#-[\]-~]*$/;

/**
 * `JSON.stringify` of a text, of which most need nothing escaped. What is written often is put together out of
 * these: to write a list or an object, V8 allocates 8 KiB each time.
 */
export function jsonText(text: string): string {
  return plainForm.test(text) ? `"${text}"` : JSON.stringify(text);
}
