/** A part of a request (path, query, header, or body) with expressions in it, compiled and written with values. */
import type { Json } from '../../base/json.ts';
import type { Evaluation } from '../evaluation/evaluation.ts';
import { newEvaluation } from '../evaluation/evaluation.ts';
import { guarded } from '../expression.ts';
import { type Reference, References } from '../reading.ts';
import { percentsWithPlus, plain } from './encodings.ts';
import { type Evaluating, expressionsMax, type TextReferences } from './expressions.ts';
import type { TextForm } from './forms.ts';
import { parseWritten, readJson } from './json.ts';
import { readUniform, type TextPart } from './parts.ts';
import { readPath } from './path.ts';
import { concealing, type RequestScope, variablesOf } from './scope.ts';
import { readXml } from './xml.ts';

export interface CompiledText {
  /** Each reference once, in the order of the text. */
  readonly references: readonly Reference[];
  /** How many expressions there are, equal ones counted each, with those that were counted before. */
  readonly expressionCount: number;
  readonly parts: readonly TextPart[];
}

const readers: Readonly<Record<TextForm, (text: string, gathered: TextReferences) => TextPart[]>> =
  {
    json: readJson,
    xml: readXml,
    path: readPath,
    form: (text, gathered) =>
      readUniform(text, { form: 'form', encoding: percentsWithPlus }, gathered),
    query: (text, gathered) =>
      readUniform(text, { form: 'query', encoding: percentsWithPlus }, gathered),
    text: (text, gathered) => readUniform(text, { form: 'text', encoding: plain }, gathered),
    header: (text, gathered) => readUniform(text, { form: 'header', encoding: plain }, gathered),
  };

export interface ReadText {
  /** Can be evaluated once all is compiled. */
  readonly text: CompiledText;
  /** To be called once each, with pauses in between: a body may have many expressions. */
  readonly uncompiled: readonly (() => void)[];
}

/** Where several texts are counted together. */
export interface ExpressionCount {
  readonly before: number;
  readonly max: number;
}

/**
 * Reads a text and leaves the compiling to the caller, which serves other requests in between.
 *
 * @throws ExpressionError with the place of what is no expression, as do the parts to be compiled, and
 * for more of them than `max`. It repeats nothing of the text.
 */
export function readText(
  text: string,
  form: TextForm,
  { before, max }: ExpressionCount = { before: 0, max: expressionsMax },
): ReadText {
  const gathered: TextReferences = {
    references: new References(),
    uncompiled: [],
    expressionCount: before,
    expressionsMax: max,
  };
  const parts = readers[form](text, gathered);
  const { references, expressionCount, uncompiled } = gathered;
  return { text: { references: references.list, expressionCount, parts }, uncompiled };
}

/**
 * The same with everything compiled.
 *
 * @throws ExpressionError
 */
export function compileText(text: string, form: TextForm): CompiledText {
  const { text: compiled, uncompiled } = readText(text, form);
  for (const compile of uncompiled) compile();
  return compiled;
}

/**
 * The text with every expression replaced by its value, written so that it is one value where it stands.
 *
 * @throws ExpressionError with the place of the expression that cannot be evaluated or written there.
 */
export function evaluateText(
  text: CompiledText,
  scope: RequestScope,
  evaluation: Evaluation = newEvaluation(),
): string {
  const values = text.references.map((reference) => scope.valueOf(reference) ?? null);
  return write(text, { values, scope, variables: variablesOf(scope), evaluation });
}

function write({ parts }: CompiledText, evaluating: Evaluating): string {
  const { evaluation } = evaluating;
  evaluation.budget.begin();
  const written = (part: TextPart) => (typeof part === 'string' ? part : part(evaluating));
  return guarded(() => parts.map(written).join(''));
}

export interface FittingText {
  readonly evaluation: Evaluation;
  /** Throws for a text that cannot stand in its place. */
  readonly requireFit: ((written: string) => void) | undefined;
}

/**
 * The same as {@link evaluateText} for a text that has to fit. Where the caller must not learn whether the values do, a
 * text that does not is written with null in place of each.
 *
 * @throws ExpressionError, and what `requireFit` throws
 */
export function evaluateFitting(
  text: CompiledText,
  scope: RequestScope,
  { evaluation, requireFit }: FittingText,
): string {
  const written = evaluateText(text, scope, evaluation);
  const failures = concealing(scope);
  try {
    requireFit?.(written);
    return written;
  } catch (error) {
    if (failures === undefined) throw error;
    failures.onConcealed();
  }
  const values = text.references.map(() => null);
  const nulls = { values, scope, variables: {}, evaluation, isBlank: true } as const;
  const blank = write(text, nulls);
  requireFit?.(blank);
  return blank;
}

/**
 * Any JSON whose strings hold expressions, such as what a transform makes a token of.
 *
 * @throws ExpressionError
 */
export function compileValue(value: Json): CompiledText {
  return compileText(JSON.stringify(value), 'json');
}

/** @throws ExpressionError */
export function evaluateValue(
  compiled: CompiledText,
  scope: RequestScope,
  evaluation: Evaluation = newEvaluation(),
): Json {
  return parseWritten(evaluateText(compiled, scope, evaluation));
}
