/** Any JSON whose strings name tokens, `{{ <id> | filters }}`: the body of detokenize. */
import assert from 'node:assert/strict';
import { invalid, type VaultError } from '../base/errors.ts';
import { isObject, type Json, nestingMax } from '../base/json.ts';
import { memberPath } from './attribute-path.ts';
import { ExpressionError } from './evaluation/error.ts';
import { type Evaluate, type Evaluation, newEvaluation } from './evaluation/evaluation.ts';
import { textOf } from './evaluation/result.ts';
import { compileExpression, guarded } from './expression.ts';
import {
  endOfExpression,
  firstMatch,
  headAt,
  markPattern,
  type Reference,
  References,
  rawEndPattern,
  referenceOf,
} from './reading.ts';
import { setMember } from './template.ts';

export interface ReferenceTemplate {
  /** Each reference once, in the order of the JSON. */
  readonly references: readonly Reference[];
  /** The number of expressions, equal ones included. */
  readonly expressionCount: number;
  readonly root: TemplateNode;
}

/** Evaluates its part of the template from the values of all references. */
type TemplateNode = (values: readonly Json[], evaluation: Evaluation) => Json;

/** Collects the references of a template while it is compiled. */
interface GatheredReferences {
  readonly references: References;
  readonly limit: ExpressionLimit;
  /** The expressions that are not compiled yet. */
  readonly uncompiled: (() => void)[];
  expressionCount: number;
}

/** The most expressions that any body may have. */
export const expressionsMax = 10_000;

/** The limit of this body, where it is lower. */
export interface ExpressionLimit {
  readonly max: number;
  /** The error message for a body with more. */
  readonly message: string;
}

const generalLimit: ExpressionLimit = {
  max: expressionsMax,
  message: `must have at most ${expressionsMax} expressions`,
};

/** The cost of a character written into a body: one response may hold a few megabytes. */
const writtenWork = 3;

/** The variable that stands for the referenced value once its id is known. */
const variable = 'value';

export interface ReadReferences {
  /** Can be evaluated once everything is compiled. */
  readonly template: ReferenceTemplate;
  /** One for each expression with filters, to be called once; each throws for an invalid expression as reading does. */
  readonly uncompiled: readonly (() => void)[];
}

/**
 * Parses a body and leaves the compilation to the calling code, which serves other requests in between,
 * because a body may have many expressions. Names of members are not evaluated, and the only tag is
 * `{% raw %}`. Expressions beyond the limit are not counted.
 *
 * @throws VaultError 400 naming the member whose string has an invalid expression, or `body` with more
 * of them than the limit.
 */
export function readReferences(json: Json, given: ExpressionLimit = generalLimit): ReadReferences {
  const limit = given.max < expressionsMax ? given : generalLimit;
  const uncompiled: (() => void)[] = [];
  const gathered: GatheredReferences = {
    references: new References(),
    limit,
    uncompiled,
    expressionCount: 0,
  };
  const root = nodeOf(json, { path: '', level: 1 }, gathered);
  const { references, expressionCount } = gathered;
  return { template: { references: references.list, expressionCount, root }, uncompiled };
}

/**
 * The body with every expression replaced by its value; null where there is none.
 *
 * @param values of the references of the template, in their order.
 * @throws ExpressionError with the place of the expression that cannot be evaluated.
 */
export function evaluateReferences(
  template: ReferenceTemplate,
  values: readonly Json[],
  evaluation: Evaluation = newEvaluation(),
): Json {
  evaluation.budget.begin();
  return guarded(() => template.root(values, evaluation));
}

/** Literal characters, or an expression between them. */
type TemplatePiece = string | TemplateNode;

interface Compiling {
  readonly path: string;
  readonly gathered: GatheredReferences;
}

interface NodePosition {
  readonly path: string;
  readonly level: number;
}

function nodeOf(
  json: Json,
  { path, level }: NodePosition,
  gathered: GatheredReferences,
): TemplateNode {
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

function textNode(text: string, path: string, gathered: GatheredReferences): TemplateNode {
  const pieces = piecesOf(text, { path, gathered });
  const significant = pieces.filter((piece) => typeof piece !== 'string' || piece.trim() !== '');
  const [only] = significant;
  if (significant.length === 1 && typeof only === 'function') return located(only, path);
  if (pieces.every((piece) => typeof piece === 'string')) return () => pieces.join('');
  const joined: TemplateNode = (values, evaluation) =>
    pieces
      .map((piece) => (typeof piece === 'string' ? piece : textOf(piece(values, evaluation))))
      .join('');
  return located(joined, path);
}

/** Adds the place to an error. */
function located(node: TemplateNode, path: string): TemplateNode {
  return (values, evaluation) => {
    try {
      return guarded(() => node(values, evaluation));
    } catch (error) {
      throw error instanceof ExpressionError ? new ExpressionError(error.public, path) : error;
    }
  };
}

/** Splits a string into literal parts and expressions. */
function piecesOf(text: string, compiling: Compiling): TemplatePiece[] {
  if (!text.includes('{{')) return [text];
  const pieces: TemplatePiece[] = [];
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

interface ReadPiece {
  readonly piece: TemplatePiece;
  readonly end: number;
}

function rawAt(text: string, begin: number, { path }: Compiling): ReadPiece {
  const close = firstMatch(rawEndPattern, text, begin);
  if (close === null) throw flawAt(path, begin, 'expected "{% endraw %}" after this');
  return { piece: text.slice(begin, close.index), end: close.index + close[0].length };
}

function expressionAt(text: string, begin: number, { path, gathered }: Compiling): ReadPiece {
  const head = headAt(text, begin);
  const end = endOfExpression(text, head.end);
  if (end === undefined) throw flawAt(path, begin, 'expected "}}" after this');
  const reference = referenceOf(head.words);
  if (reference === undefined) throw flawAt(path, begin, 'expected the id of a token');
  const position = gather(reference, gathered);
  return { piece: filteredNode({ text, path, position, begin: head.end, end }, gathered), end };
}

interface Filtered {
  readonly text: string;
  readonly path: string;
  /** The index of the filtered reference. */
  readonly position: number;
  /** The range of its filters in the string, with the closing braces. */
  readonly begin: number;
  readonly end: number;
}

function filteredNode(
  { text, path, position, begin, end }: Filtered,
  { uncompiled }: GatheredReferences,
): TemplateNode {
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

function gather(reference: Reference, gathered: GatheredReferences): number {
  gathered.expressionCount += 1;
  const { max, message } = gathered.limit;
  if (gathered.expressionCount > max) throw invalid('body', message);
  return gathered.references.add(reference);
}

function flawAt(path: string, at: number, expected: string): VaultError {
  return invalid(path || 'body', `is not a valid expression: at character ${at + 1}, ${expected}`);
}
