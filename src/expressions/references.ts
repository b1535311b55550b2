/** Any JSON whose strings name tokens, `{{ <id> | filters }}`: the body of detokenize. */
import assert from 'node:assert/strict';
import { Tokenizer } from 'liquidjs';
import { invalid, type VaultError } from '../lib/errors.ts';
import { tokenIdLengthMax } from '../lib/ids.ts';
import { isObject, type Json, nestingMax } from '../lib/json.ts';
import { memberPath } from './attribute-path.ts';
import { expressionLengthMax } from './engine.ts';
import { ExpressionError } from './evaluation/error.ts';
import { type Evaluate, type Evaluation, newEvaluation } from './evaluation/evaluation.ts';
import { textOf } from './evaluation/result.ts';
import { compileExpression, guarded } from './expression.ts';
import { setMember } from './template.ts';

/** What an expression begins with: the data of a token, the token itself, or a token intent. */
export type ReferenceKind = 'data' | 'token' | 'token_intent';

export interface Reference {
  readonly kind: ReferenceKind;
  readonly id: string;
}

export interface ReferenceTemplate {
  /** Each reference once, in the order of the JSON. */
  readonly references: readonly Reference[];
  /** How many expressions there are, equal ones counted each. */
  readonly expressionCount: number;
  readonly root: Node;
}

/** Evaluates its part of the template from the values of all references. */
type Node = (values: readonly Json[], evaluation: Evaluation) => Json;

/** Gathers what a template refers to while it is compiled. */
interface Gathered {
  readonly positions: Map<string, number>;
  readonly references: Reference[];
  readonly limit: ExpressionLimit;
  /** What remains to be compiled. */
  readonly uncompiled: (() => void)[];
  expressionCount: number;
}

/** Expressions one body may have at all. */
export const expressionsMax = 10_000;

/** How many of them it may have where that is fewer. */
export interface ExpressionLimit {
  readonly max: number;
  /** What is said of a body with more. */
  readonly message: string;
}

const generalLimit: ExpressionLimit = {
  max: expressionsMax,
  message: `must have at most ${expressionsMax} expressions`,
};

/** A character that is written into a body: a few megabytes are all that one response may hold. */
const writtenWork = 3;

/** The variable that stands for the referenced value once its id is known. */
const variable = 'value';

export interface ReadReferences {
  /** Can be evaluated once all is compiled. */
  readonly template: ReferenceTemplate;
  /** One for each expression with filters, to be called once; each throws for an invalid expression as reading does. */
  readonly uncompiled: readonly (() => void)[];
}

/**
 * Reads a body and leaves the compiling to the caller, who serves other requests in between: a body may
 * have many expressions. Names of members are not evaluated, and the only tag is `{% raw %}`. Expressions
 * beyond the limit are not counted.
 *
 * @throws VaultError 400 naming the member whose string has an invalid expression, or `body` with more
 * of them than the limit.
 */
export function readReferences(json: Json, given: ExpressionLimit = generalLimit): ReadReferences {
  const limit = given.max < expressionsMax ? given : generalLimit;
  const uncompiled: (() => void)[] = [];
  const gathered: Gathered = {
    positions: new Map(),
    references: [],
    limit,
    uncompiled,
    expressionCount: 0,
  };
  const root = nodeOf(json, { path: '', level: 1 }, gathered);
  const { references, expressionCount } = gathered;
  return { template: { references, expressionCount, root }, uncompiled };
}

/**
 * The body with every expression replaced by its value; null where there is none.
 *
 * @param resolve gives the value of a reference and is asked once for each. What it throws is thrown.
 * @throws ExpressionError with the place of the expression that cannot be evaluated.
 */
export function evaluateReferences(
  template: ReferenceTemplate,
  resolve: (reference: Reference) => Json | undefined,
  evaluation: Evaluation = newEvaluation(),
): Json {
  const values = template.references.map((reference) => resolve(reference) ?? null);
  evaluation.budget.begin();
  return guarded(() => template.root(values, evaluation));
}

/** Words as they are, or an expression between them. */
type Piece = string | Node;

interface Compiling {
  readonly path: string;
  readonly gathered: Gathered;
}

interface NodePosition {
  readonly path: string;
  readonly level: number;
}

function nodeOf(json: Json, { path, level }: NodePosition, gathered: Gathered): Node {
  if (level > nestingMax) {
    throw invalid(path, `must not be nested deeper than ${nestingMax} levels`);
  }
  if (typeof json === 'string') return textNode(json, path, gathered);
  if (Array.isArray(json)) {
    const items = json.map((item, index) =>
      nodeOf(item, { path: `${path}[${index}]`, level: level + 1 }, gathered),
    );
    return (values, evaluation) => items.map((item) => item(values, evaluation));
  }
  if (!isObject(json)) return () => json;
  const members = Object.entries(json).map(([name, member]) => {
    const place = { path: memberPath(path, name), level: level + 1 };
    return { name, node: nodeOf(member, place, gathered) };
  });
  return (values, evaluation) => {
    const result: Record<string, Json> = {};
    for (const { name, node } of members) setMember(result, name, node(values, evaluation));
    return result;
  };
}

function textNode(text: string, path: string, gathered: Gathered): Node {
  const pieces = piecesOf(text, { path, gathered });
  const significant = pieces.filter((piece) => typeof piece !== 'string' || piece.trim() !== '');
  const [only] = significant;
  if (significant.length === 1 && typeof only === 'function') return located(only, path);
  if (pieces.every((piece) => typeof piece === 'string')) return () => pieces.join('');
  const joined: Node = (values, evaluation) =>
    pieces
      .map((piece) => (typeof piece === 'string' ? piece : textOf(piece(values, evaluation))))
      .join('');
  return located(joined, path);
}

/** Adds the place to an error. */
function located(node: Node, path: string): Node {
  return (values, evaluation) => {
    try {
      return guarded(() => node(values, evaluation));
    } catch (error) {
      throw error instanceof ExpressionError ? new ExpressionError(error.public, path) : error;
    }
  };
}

/** Where an expression begins, or a part that is to be taken literally. */
const markPattern = /\{\{|\{%-?\s*raw\s*-?%\}/g;
const rawEndPattern = /\{%-?\s*endraw\s*-?%\}/g;

/** Splits a text into words and expressions. */
function piecesOf(text: string, compiling: Compiling): Piece[] {
  if (!text.includes('{{')) return [text];
  const pieces: Piece[] = [];
  let at = 0;
  for (
    let mark = firstMatch(markPattern, text, 0);
    mark;
    mark = firstMatch(markPattern, text, at)
  ) {
    pieces.push(text.slice(at, mark.index));
    const begin = mark.index + mark[0].length;
    const { piece, end } =
      mark[0] === '{{' ? expressionAt(text, begin, compiling) : rawAt(text, begin, compiling);
    pieces.push(piece);
    at = end;
  }
  pieces.push(text.slice(at));
  return pieces.filter((piece) => piece !== '');
}

function firstMatch(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

interface PieceAt {
  readonly piece: Piece;
  readonly end: number;
}

function rawAt(text: string, begin: number, { path }: Compiling): PieceAt {
  const close = firstMatch(rawEndPattern, text, begin);
  if (close === null) throw flawAt(path, begin, 'expected "{% endraw %}" after this');
  return { piece: text.slice(begin, close.index), end: close.index + close[0].length };
}

/** An id ends at the first pipe or at the end of the expression: it may hold anything else. */
const idPattern = /[^|}]*(?:\}(?!\})[^|}]*)*/y;
const kindPattern = /^(token_intent|token)\s*:\s*/;

function expressionAt(text: string, begin: number, { path, gathered }: Compiling): PieceAt {
  const written = firstMatch(idPattern, text, begin)?.[0] ?? '';
  const words = written.trim();
  const idEnd = begin + written.length;
  const end = endOfExpression(text, idEnd);
  if (end === undefined) throw flawAt(path, begin, 'expected "}}" after this');
  const prefix = kindPattern.exec(words);
  const id = words.slice(prefix?.[0].length ?? 0);
  if (id === '' || id.length > tokenIdLengthMax) {
    throw flawAt(path, begin, 'expected the id of a token');
  }
  const kind = (prefix?.[1] ?? 'data') as ReferenceKind;
  const position = gather({ kind, id }, gathered);
  return { piece: filteredNode({ text, path, position, begin: idEnd, end }, gathered), end };
}

/** The end of the filters that begin at `from`; braces within quotes do not end them. */
function endOfExpression(text: string, from: number): number | undefined {
  if (text.startsWith('}}', from)) return from + 2;
  const range: [number, number] = [from, Math.min(text.length, from + expressionLengthMax)];
  const end = new Tokenizer(text, undefined, undefined, range).readToDelimiter('}}', true);
  return end < 0 ? undefined : end;
}

interface Filtered {
  readonly text: string;
  readonly path: string;
  /** Which reference is filtered. */
  readonly position: number;
  /** Where its filters are in the text, with the closing braces. */
  readonly begin: number;
  readonly end: number;
}

function filteredNode(
  { text, path, position, begin, end }: Filtered,
  { uncompiled }: Gathered,
): Node {
  const filters = text.slice(begin, end);
  if (filters === '}}') {
    return (values, { budget }) => {
      const value = values[position] ?? null;
      budget.check();
      budget.useFor(value, writtenWork);
      return value;
    };
  }
  const head = `{{ ${variable} `;
  let run: Evaluate | undefined;
  uncompiled.push(() => {
    run = compileExpression(head + filters, path, begin - head.length).run;
  });
  return (values, evaluation) => {
    assert(run, 'every expression is compiled before it is evaluated');
    const value = run({ [variable]: values[position] ?? null }, evaluation) ?? null;
    evaluation.budget.useFor(value, writtenWork - 1);
    return value;
  };
}

function gather(reference: Reference, gathered: Gathered): number {
  gathered.expressionCount += 1;
  const { max, message } = gathered.limit;
  if (gathered.expressionCount > max) throw invalid('body', message);
  const key = `${reference.kind}:${reference.id}`;
  const known = gathered.positions.get(key);
  if (known !== undefined) return known;
  gathered.positions.set(key, gathered.references.length);
  return gathered.references.push(reference) - 1;
}

function flawAt(path: string, at: number, expected: string): VaultError {
  return invalid(path || 'body', `is not a valid expression: at character ${at + 1}, ${expected}`);
}
