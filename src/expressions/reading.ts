/** Finds expressions in a string, and parses their heads: the same for every place that references tokens. */
import { Tokenizer } from 'liquidjs';
import { parseUuid, tokenIdLengthMax } from '../base/ids.ts';
import { expressionLengthMax } from './engine.ts';

/** The kinds of heads: the data of a token, the token itself, or a token intent. */
export type ReferenceKind = 'data' | 'token' | 'token_intent';

export interface Reference {
  readonly kind: ReferenceKind;
  readonly id: string;
}

/** The start of an expression, or of a literal part. */
export const markPattern = /\{\{|\{%-?\s*raw\s*-?%\}/g;
export const rawEndPattern = /\{%-?\s*endraw\s*-?%\}/g;

export function firstMatch(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

/** An id ends at the first pipe or at the end of the expression. It may contain any other character. */
const idPattern = /[^|}]*(?:\}(?!\})[^|}]*)*/y;
const kindPattern = /^(token_intent|token)\s*:\s*/;

export interface ExpressionHead {
  /** Without the spaces around them. */
  readonly words: string;
  /** Where the filters begin, or the closing braces. */
  readonly end: number;
}

/** The part before the filters of the expression whose braces end at `begin`. */
export function headAt(text: string, begin: number): ExpressionHead {
  const written = firstMatch(idPattern, text, begin)?.[0] ?? '';
  return { words: written.trim(), end: begin + written.length };
}

/**
 * The reference of a head. `undefined` without an id, or with one that is too long. An intent's id is
 * normalized, because each spelling would otherwise be a reference of its own.
 */
export function referenceOf(words: string): Reference | undefined {
  const prefix = kindPattern.exec(words);
  const id = words.slice(prefix?.[0].length ?? 0);
  if (id === '' || id.length > tokenIdLengthMax) return undefined;
  const kind = (prefix?.[1] ?? 'data') as ReferenceKind;
  return { kind, id: kind === 'token_intent' ? (parseUuid(id) ?? id) : id };
}

/** The end of the filters that begin at `from`; braces within quotes do not end them. */
export function endOfExpression(text: string, from: number): number | undefined {
  if (text.startsWith('}}', from)) return from + 2;
  const range: [number, number] = [from, Math.min(text.length, from + expressionLengthMax)];
  const end = new Tokenizer(text, undefined, undefined, range).readToDelimiter('}}', true);
  return end < 0 ? undefined : end;
}

/** Each reference once, in the order of first occurrence. */
export class References {
  readonly list: Reference[] = [];
  readonly #positions = {
    data: new Map<string, number>(),
    token: new Map<string, number>(),
    token_intent: new Map<string, number>(),
  };

  /** The index of the reference in the list. */
  add(reference: Reference): number {
    const positions = this.#positions[reference.kind];
    const known = positions.get(reference.id);
    if (known !== undefined) return known;
    positions.set(reference.id, this.list.length);
    return this.list.push(reference) - 1;
  }
}
