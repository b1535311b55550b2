/** One expression in a part of a request: found, compiled, and evaluated in its context. */
import assert from 'node:assert/strict';
import { VaultError } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import { expressionLengthMax } from '../engine.ts';
import { ExpressionError, UnknownNameError } from '../evaluation/error.ts';
import type { Evaluate, Evaluation } from '../evaluation/evaluation.ts';
import { compileExpression, guarded } from '../expression.ts';
import { endOfExpression, headAt, type References, referenceOf } from '../reading.ts';
import { beginsExpression, type Encoding } from './encodings.ts';
import {
  beginsWithVariable,
  checkPath,
  concealing,
  configured,
  type RequestScope,
  transformed,
  type VariablePath,
  type Variables,
  variablesRead,
} from './scope.ts';

/** What the expressions of a text are evaluated with. */
export interface Evaluating {
  /** Of the references, in their order. */
  readonly values: readonly Json[];
  readonly scope: RequestScope;
  readonly variables: Variables;
  readonly evaluation: Evaluation;
  /** Every expression gives null. */
  readonly isBlank?: true;
}

type ExpressionNode = (evaluating: Evaluating) => Json;

/** An expression at its place. */
export interface PlacedExpression {
  /** Where it begins in what the caller wrote. */
  readonly at: number;
  /** Gives its value. */
  readonly evaluate: ExpressionNode;
}

/** Gathers what a text refers to while it is read. */
export interface TextReferences {
  readonly references: References;
  /** What remains to be compiled. */
  readonly uncompiled: (() => void)[];
  expressionCount: number;
  /** At most {@link expressionsMax}. */
  readonly expressionsMax: number;
}

/** A text or a part of one in which expressions are spelled alike. */
export interface TextRegion {
  readonly text: string;
  /** Where it begins in what the caller wrote. */
  readonly offset: number;
  readonly encoding: Encoding;
}

/** A character that is written into a request: a few megabytes are all that expressions may make. */
export const writtenWork = 4;

/** Expressions one text may have, as one body of detokenize. */
export const expressionsMax = 10_000;

/** Words as they were written, or an expression between them. */
export type TextPiece = string | PlacedExpression;

/**
 * Splits a region into words and expressions.
 *
 * @throws ExpressionError for an expression that does not end, or begins with no name.
 */
export function piecesOf(region: TextRegion, gathered: TextReferences): TextPiece[] {
  const { text, offset, encoding } = region;
  const pieces: TextPiece[] = [];
  let at = 0;
  for (const mark of marksOf(region, () => at)) {
    pieces.push(text.slice(at, mark.index));
    const begin = mark.index + mark[0].length;
    if (beginsExpression(mark[0])) {
      const { piece, end } = expressionAt(region, { at: mark.index, begin }, gathered);
      pieces.push(piece);
      at = end;
    } else {
      encoding.rawEnd.lastIndex = begin;
      const close = encoding.rawEnd.exec(text);
      if (close === null) throw flawAt(offset + begin, 'expected "{% endraw %}" after this');
      pieces.push(text.slice(begin, close.index));
      at = close.index + close[0].length;
    }
  }
  pieces.push(text.slice(at));
  return pieces.filter((piece) => piece !== '');
}

function* marksOf({ text, encoding: { mark } }: TextRegion, from: () => number) {
  for (;;) {
    mark.lastIndex = from();
    const found = mark.exec(text);
    if (found === null) return;
    yield found;
  }
}

/** What is decoded at first to find an expression's end, and how much more each time it was too little. */
const windowLength = 512;
const windowGrowth = 4;

/** An escape is at most so many characters for one. */
const escapeLengthMax = 9;
const windowLengthMax = 2 * expressionLengthMax * escapeLengthMax;

interface ReadExpression {
  readonly piece: PlacedExpression;
  readonly end: number;
}

/** The expression whose braces are from `at` to `begin`. Only as much is decoded as it is long. */
export function expressionAt(
  { text, offset, encoding }: TextRegion,
  { at, begin }: { readonly at: number; readonly begin: number },
  gathered: TextReferences,
): ReadExpression {
  for (let length = windowLength; ; length *= windowGrowth) {
    const decoded = encoding.decode(text.slice(begin, begin + length));
    const found = contentOf(decoded.text);
    if (found !== undefined) {
      const piece = place({ ...found, text: decoded.text, at: offset + at }, gathered);
      return { piece, end: begin + decoded.writtenIndex(found.end) };
    }
    if (begin + length >= text.length || length > windowLengthMax) break;
  }
  throw flawAt(offset + at, 'expected "}}" after this');
}

interface ExpressionContent {
  /** Empty where it begins with a variable. */
  readonly words: string;
  readonly filtersBegin: number;
  readonly end: number;
}

function contentOf(text: string): ExpressionContent | undefined {
  const head = beginsWithVariable(text, 0) ? { words: '', end: 0 } : headAt(text, 0);
  const end = endOfExpression(text, head.end);
  return end === undefined ? undefined : { words: head.words, filtersBegin: head.end, end };
}

interface FoundExpression extends ExpressionContent {
  readonly text: string;
  readonly at: number;
}

function place(found: FoundExpression, gathered: TextReferences): PlacedExpression {
  gathered.expressionCount += 1;
  if (gathered.expressionCount > gathered.expressionsMax) {
    throw new ExpressionError(`must have at most ${gathered.expressionsMax} expressions`);
  }
  const node =
    found.filtersBegin === 0 && found.words === ''
      ? variableNode(found, gathered)
      : filteredNode(found, sourceOf(found, gathered), gathered);
  const { at } = found;
  return {
    at,
    evaluate: (evaluating) =>
      evaluating.isBlank ? null : located(at, () => orNull(evaluating, () => node(evaluating))),
  };
}

/** The value, or null where it is an error that would tell the caller about values: see {@link FailuresInScope}. */
export function orNull<T>({ scope }: Evaluating, evaluate: () => T): T | null {
  const failures = concealing(scope);
  if (failures === undefined) return evaluate();
  try {
    return guarded(evaluate);
  } catch (error) {
    if (!(error instanceof ExpressionError) || error instanceof UnknownNameError) throw error;
    failures.onConcealed();
    return null;
  }
}

const configPattern = /^config\s*:\s*(.*)$/s;
const transformPattern = /^(?:tokenize_transform|transform_identifier)\s*:\s*(.*)$/s;
const quotedPattern = /^(['"])([A-Za-z0-9_-]{1,100})\1$/;

/** What the filters of an expression are given. */
function sourceOf({ words, at }: FoundExpression, { references }: TextReferences): ExpressionNode {
  const name = configPattern.exec(words)?.[1];
  if (name === '') throw flawAt(at, 'expected the name of an entry of the configuration');
  if (name !== undefined) return ({ scope }) => configured(name, scope);
  const given = transformPattern.exec(words)?.[1];
  if (given !== undefined) {
    const identifier = quotedPattern.exec(given)?.[2];
    if (identifier !== undefined) return ({ scope }) => transformed(identifier, scope);
    throw flawAt(at, 'expected the identifier of a transform between quotes');
  }
  const reference = referenceOf(words);
  if (reference === undefined) throw flawAt(at, 'expected the id of a token');
  const position = references.add(reference);
  return ({ values }) => values[position] ?? null;
}

/** The variable that stands for what is filtered. */
const variable = 'value';

function filteredNode(
  { text, filtersBegin, end, at }: FoundExpression,
  source: ExpressionNode,
  gathered: TextReferences,
) {
  const filters = text.slice(filtersBegin, end);
  if (filters === '}}') return written(source, writtenWork);
  const content = `${variable} ${filters.slice(0, -2)}`;
  const shift = at + '{{'.length + filtersBegin - `{{ ${variable} `.length;
  const run = compiledLater({ content: ` ${content}`, at, shift, known: [variable] }, gathered);
  return written((evaluating) => run(evaluating, source(evaluating)), writtenWork - 1);
}

function variableNode(
  { text, end, at }: FoundExpression,
  gathered: TextReferences,
): ExpressionNode {
  const run = compiledLater(
    { content: text.slice(0, end - 2), at, shift: at, known: [] },
    gathered,
  );
  return written((evaluating) => run(evaluating, null), writtenWork - 1);
}

interface Uncompiled {
  /** All between the braces. */
  readonly content: string;
  /** Where the expression is in what the caller wrote. */
  readonly at: number;
  /** Where its content with opening braces would begin there. */
  readonly shift: number;
  /** Variables besides those of the request. */
  readonly known: readonly string[];
}

function compiledLater({ content, at, shift, known }: Uncompiled, gathered: TextReferences) {
  let compiled: { run: Evaluate; paths: readonly VariablePath[] } | undefined;
  gathered.uncompiled.push(() => {
    compiled = located(at, () => {
      const { run } = asExpressionErrors(() => compileExpression(`{{${content}}}`, '', shift));
      const read = variablesRead(content, known);
      const same = read.content === content;
      return {
        run: same ? run : compileExpression(`{{${read.content}}}`, '', shift).run,
        paths: read.paths,
      };
    });
  });
  return ({ variables, evaluation }: Evaluating, value: Json) => {
    assert(compiled, 'every expression is compiled before it is evaluated');
    for (const path of compiled.paths) checkPath(path, variables);
    return compiled.run({ ...variables, [variable]: value }, evaluation) ?? null;
  };
}

function written(node: ExpressionNode, work: number): ExpressionNode {
  return (evaluating) => {
    const { budget } = evaluating.evaluation;
    const value = node(evaluating);
    budget.check();
    budget.useFor(value, work);
    return value;
  };
}

/** Adds the place to an error that does not have it. */
export function located<T>(at: number, evaluate: () => T): T {
  try {
    return guarded(evaluate);
  } catch (error) {
    if (!(error instanceof ExpressionError) || error.path !== undefined) throw error;
    throw new ExpressionError(`the expression at character ${at + 1}: ${error.public}`, inText);
  }
}

/** The path of an error that says its place in the text for itself. */
const inText = '';

export function flawAt(at: number, expected: string): ExpressionError {
  const character = at + 1;
  return new ExpressionError(
    `is not a valid expression: at character ${character}, ${expected}`,
    inText,
  );
}

function asExpressionErrors<T>(compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof VaultError)) throw error;
    const [[message] = []] = Object.values(error.errors ?? {});
    throw new ExpressionError(message ?? 'is not a valid expression', inText);
  }
}
