/**
 * Finds where the values of a JSON string begin and end, without creating them. For 5 MB of small values, JSON.parse
 * takes two to three times as long, and this needs no stack for nested lists.
 */

import type { Pause } from '../../base/pauses.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';

const quote = 0x22;
const comma = 0x2c;
const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const nine = 0x39;
const colon = 0x3a;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;
const space = 0x20;

/** Steps between two looks at the clock; less than a millisecond, as measured. */
export const stepsOfPart = 2_048;

/**
 * Maps the start index of each value and each member name to its end.
 *
 * @throws ExpressionError for exactly the strings that JSON.parse does not accept.
 */
export async function endsOfJson(text: string, pause: Pause): Promise<Uint32Array> {
  const ends = new Uint32Array(text.length);
  await walkJson(text, { ends, pause });
  return ends;
}

/**
 * Whether JSON.parse of the string would create more than `max` values.
 *
 * @throws ExpressionError if the string is not JSON and does not exceed the limit.
 */
export async function hasMoreValues(text: string, max: number, pause: Pause): Promise<boolean> {
  return (await walkJson(text, { ends: undefined, pause, valuesMax: max })) > max;
}

interface ValueWalk {
  readonly ends: Uint32Array | undefined;
  readonly pause: Pause;
  /** The walk ends after this many values. */
  readonly valuesMax?: number;
}

/** @returns the number of values. */
async function walkJson(
  text: string,
  { ends, pause, valuesMax = Number.POSITIVE_INFINITY }: ValueWalk,
): Promise<number> {
  /** Start indexes of the lists and objects that are still open. */
  const open: number[] = [];
  let values = 0;
  let steps = 0;
  let at = afterBlank(text, 0);
  for (;;) {
    values += 1;
    if (values > valuesMax) return values;
    steps += 1;
    if (steps % stepsOfPart === 0) await pause();
    const code = text.charCodeAt(at);
    if (code === openList || code === openObject) {
      open.push(at);
      at = afterBlank(text, at + 1);
      if (text.charCodeAt(at) !== closeOf(code)) {
        if (code === openObject) at = afterName(text, at, ends);
        continue;
      }
    } else {
      const end = endOfPlain(text, at);
      if (ends) ends[at] = end;
      at = afterBlank(text, end);
    }
    for (;;) {
      const begin = open[open.length - 1];
      if (begin === undefined) {
        if (at === text.length) return values;
        throw flaw();
      }
      const kind = text.charCodeAt(begin);
      if (text.charCodeAt(at) === comma) {
        at = afterBlank(text, at + 1);
        if (kind === openObject) at = afterName(text, at, ends);
        break;
      }
      if (text.charCodeAt(at) !== closeOf(kind)) throw flaw();
      open.pop();
      if (ends) ends[begin] = at + 1;
      at = afterBlank(text, at + 1);
      steps += 1;
      if (steps % stepsOfPart === 0) await pause();
    }
  }
}

export function afterBlank(text: string, from: number): number {
  for (let at = from; ; at += 1) {
    const code = text.charCodeAt(at);
    // Nearly always the first comparison suffices; past the end, the code is NaN.
    if (!(code <= space)) return at;
    if (code !== space && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
  }
}

function closeOf(code: number): number {
  return code === openList ? closeList : closeObject;
}

/** The index at which the value begins. */
function afterName(text: string, at: number, ends: Uint32Array | undefined): number {
  if (text.charCodeAt(at) !== quote) throw flaw();
  const end = endOfString(text, at + 1);
  if (ends) ends[at] = end;
  const separator = afterBlank(text, end);
  if (text.charCodeAt(separator) !== colon) throw flaw();
  return afterBlank(text, separator + 1);
}

/** Keyed by their first character. */
const words = new Map(['true', 'false', 'null'].map((word) => [word.charCodeAt(0), word]));

/** For a string, a number, or a literal. */
function endOfPlain(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === quote) return endOfString(text, at + 1);
  if (code === minus || isDigit(code)) return endOfNumber(text, at);
  const word = words.get(code);
  if (word === undefined || !text.startsWith(word, at)) throw flaw();
  return at + word.length;
}

/**
 * Up to this length, checking characters one by one is faster. Beyond it, a regular expression is ten times as fast.
 */
const shortString = 32;
/** A quote, a backslash, or a control character: all characters that cannot appear unescaped. */
const specialPattern = /[^ !#-[\]-\uffff]/g;

/** Request strings are only scanned for expressions, but this string must be valid JSON. */
function endOfString(text: string, begin: number): number {
  let plainFrom = begin;
  for (let at = begin; at < text.length; at += 1) {
    if (at - plainFrom === shortString) at = specialAt(text, at);
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code < space) break;
    if (code === backslash) {
      at += escapeLength(text, at) - 1;
      plainFrom = at + 1;
    }
  }
  throw flaw();
}

/** Returns the length of the string if it has no special character. */
function specialAt(text: string, from: number): number {
  specialPattern.lastIndex = from;
  return specialPattern.exec(text)?.index ?? text.length;
}

const escapePattern = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

function escapeLength(text: string, at: number): number {
  escapePattern.lastIndex = at;
  if (!escapePattern.test(text)) throw flaw();
  return escapePattern.lastIndex - at;
}

function endOfNumber(text: string, begin: number): number {
  let at = text.charCodeAt(begin) === minus ? begin + 1 : begin;
  at = text.charCodeAt(at) === zero ? at + 1 : afterDigits(text, at);
  if (text.charCodeAt(at) === dot) at = afterDigits(text, at + 1);
  if (text[at] !== 'e' && text[at] !== 'E') return at;
  at += 1;
  return afterDigits(text, text[at] === '+' || text[at] === '-' ? at + 1 : at);
}

/** Requires at least one digit. */
function afterDigits(text: string, begin: number): number {
  let at = begin;
  while (isDigit(text.charCodeAt(at))) at += 1;
  if (at === begin) throw flaw();
  return at;
}

function isDigit(code: number): boolean {
  return code >= zero && code <= nine;
}

function flaw(): ExpressionError {
  return new ExpressionError('append_json needs a response that is JSON');
}
