/**
 * JSON as it was written: only strings that hold expressions are replaced, so that large numbers,
 * formatting and members that are named twice stay as the caller sent them.
 */
import type { Json } from '../../base/json.ts';
import { ExpressionError } from '../evaluation/error.ts';
import { textOf } from '../evaluation/result.ts';
import { jsonEscapes, plain } from './encodings.ts';
import {
  type Evaluating,
  expressionAt,
  flawAt,
  piecesOf,
  type TextPiece,
  type TextReferences,
} from './expressions.ts';
import type { TextPart } from './parts.ts';

const quote = 0x22;
const backslash = 0x5c;
const brace = 0x7b;

export function readJson(text: string, gathered: TextReferences): TextPart[] {
  const parts: TextPart[] = [];
  let kept = 0;
  let mark = text.indexOf('{{');
  for (let at = 0; mark >= 0 && at < text.length; at += 1) {
    if (text.charCodeAt(at) === quote) {
      const end = endOfString(text, at + 1);
      if (mark < end && !isName(text, end + 1)) {
        parts.push(text.slice(kept, at), stringPart(text.slice(at + 1, end), at + 1, gathered));
        kept = end + 1;
      }
      at = end;
    } else if (text.charCodeAt(at) === brace && text.charCodeAt(at + 1) === brace) {
      const region = { text, offset: 0, encoding: plain };
      const { piece, end } = expressionAt(region, { at, begin: at + 2 }, gathered);
      parts.push(text.slice(kept, at), (evaluating) => JSON.stringify(piece.evaluate(evaluating)));
      kept = end;
      at = end - 1;
    }
    if (mark <= at) mark = text.indexOf('{{', at + 1);
  }
  parts.push(text.slice(kept));
  return parts;
}

/** Where the closing quote is. */
function endOfString(text: string, begin: number): number {
  for (let at = begin; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at += 1;
  }
  throw flawAt(begin - 1, 'expected JSON, of which this string does not end');
}

const colonPattern = /[ \t\r\n]*:/y;

/** Names of members are not evaluated, as in a body of detokenize. */
function isName(text: string, after: number): boolean {
  colonPattern.lastIndex = after;
  return colonPattern.test(text);
}

const escapePattern = /\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])?/g;
const blankPattern = /^(?:[ \t]|\\[nrt])*$/;

function stringPart(text: string, offset: number, gathered: TextReferences): TextPart {
  const pieces = piecesOf({ text, offset, encoding: jsonEscapes }, gathered);
  for (const piece of pieces) if (typeof piece === 'string') checkEscapes(piece, offset);
  const significant = pieces.filter(
    (piece) => typeof piece !== 'string' || !blankPattern.test(piece),
  );
  const [only] = significant;
  if (significant.length === 1 && typeof only === 'object') {
    return (evaluating) => JSON.stringify(only.evaluate(evaluating));
  }
  return (evaluating) => `"${pieces.map((piece) => writtenWithin(piece, evaluating)).join('')}"`;
}

/** A backslash that escapes nothing would escape the first character of the value after it. */
function checkEscapes(words: string, offset: number): void {
  for (const { 0: spelled } of words.matchAll(escapePattern)) {
    if (spelled.length > 1) continue;
    throw flawAt(offset - 1, 'expected JSON, of which this string has an unknown escape');
  }
}

function writtenWithin(piece: TextPiece, evaluating: Evaluating): string {
  if (typeof piece === 'string') return piece;
  return JSON.stringify(textOf(piece.evaluate(evaluating))).slice(1, -1);
}

/** @throws ExpressionError when a value made JSON of what was none. */
export function parseWritten(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new ExpressionError('does not give JSON');
  }
}
