/** One string of the expression language: compiled once, evaluated on many data. */
import { LiquidError, Output, type Template, toValueSync } from 'liquidjs';
import { invalid, VaultError } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { LruCache } from '../base/lru-cache.ts';
import { directOf, directTextOf } from './direct.ts';
import { engine, expressionLengthMax } from './engine.ts';
import { EvaluationContext } from './evaluation/context.ts';
import { ExpressionError } from './evaluation/error.ts';
import {
  type Evaluate,
  type Evaluation,
  type ExpressionScope,
  newEvaluation,
} from './evaluation/evaluation.ts';
import { jsonOf } from './evaluation/result.ts';
import { TextEmitter } from './evaluation/text.ts';
import { flawOfText, type SyntaxFlaw, withPipes } from './syntax-flaws.ts';

export interface Expression {
  /** True when the string has neither outputs nor tags. */
  readonly constant: boolean;
  /** Without the translation of errors that {@link evaluateExpression} adds. */
  readonly run: Evaluate;
}

/** How many compiled expressions are cached, see {@link LruCache}. */
const expressionsKeptMax = 1_000_000;

const compiled = new LruCache<Expression>(expressionsKeptMax);

/**
 * Compiles the value of the attribute at `path`. A string without `{{` and `{%` is an expression
 * that gives itself.
 *
 * @param shift the offset of the string in the caller's input.
 * @throws VaultError 400 that names the attribute, the position in the string, and what was expected there.
 */
export function compileExpression(text: string, path = 'expression', shift = 0): Expression {
  if (!text.includes('{{') && !text.includes('{%')) return { constant: true, run: () => text };
  const known = compiled.get(text);
  if (known !== undefined) return known;
  if (text.length > expressionLengthMax) {
    throw invalid(path, `must have at most ${expressionLengthMax} characters`);
  }
  const expression = { constant: false, run: compile(text, path, shift) };
  compiled.set(text, expression);
  return expression;
}

/**
 * Gives the value: the JSON itself when the text is exactly one output, a string otherwise. A
 * missing property gives `undefined` or null.
 *
 * @throws ExpressionError and nothing else.
 */
export function evaluateExpression(
  expression: Expression,
  scope: ExpressionScope,
  evaluation: Evaluation = newEvaluation(),
): Json | undefined {
  evaluation.budget.begin();
  return guarded(() => expression.run(scope, evaluation));
}

/** Runs an evaluation so that nothing but an ExpressionError leaves it. */
export function guarded<T>(evaluate: () => T): T {
  try {
    return evaluate();
  } catch (error) {
    throw asExpressionError(error);
  }
}

function compile(text: string, path: string, shift: number): Evaluate {
  try {
    const piped = withPipes(text);
    const templates = engine.parse(piped);
    const flaw = flawOfText(piped);
    if (flaw === undefined) return runnerOf(templates);
    throw notAnExpression(path, flaw, shift);
  } catch (error) {
    if (error instanceof VaultError) throw error;
    throw notAnExpression(path, flawOfError(error), shift);
  }
}

function runnerOf(templates: Template[]): Evaluate {
  const [only, ...others] = templates.filter((template) => template.token.getText().trim() !== '');
  if (only instanceof Output && others.length === 0) {
    return directOf(only) ?? ((scope, evaluation) => nativeValueOf(only, scope, evaluation));
  }
  return directTextOf(templates) ?? ((scope, evaluation) => render(templates, scope, evaluation));
}

function nativeValueOf(
  output: Output,
  scope: ExpressionScope,
  evaluation: Evaluation,
): Json | undefined {
  const context = new EvaluationContext(engine, scope, evaluation);
  const value: unknown = toValueSync(output.value.value(context));
  evaluation.budget.check();
  evaluation.budget.useFor(value);
  return jsonOf(value);
}

function render(templates: Template[], scope: ExpressionScope, evaluation: Evaluation): string {
  const context = new EvaluationContext(engine, scope, evaluation);
  const emitter = new TextEmitter(evaluation.budget);
  toValueSync(engine.renderer.renderTemplates(templates, context, emitter));
  return emitter.buffer;
}

function notAnExpression(path: string, { at, expected }: SyntaxFlaw, shift: number): VaultError {
  const character = Math.max(0, at + shift) + 1;
  return invalid(path, `is not a valid expression: at character ${character}, ${expected}`);
}

/** liquidjs's messages by their prefixes. They quote the expression, which may contain keys, so ours replace them. */
const expectations: readonly (readonly [RegExp, string])[] = [
  [/^output /, 'expected the end "}}" of this output'],
  [/^tag .* not found/, 'expected a supported tag'],
  [/^(tag|raw) .* not closed/s, 'expected the end of this tag'],
  [/^undefined filter/, 'expected a supported filter'],
  [/^expected filter name/, 'expected the name of a filter'],
];

function flawOfError(error: unknown): SyntaxFlaw {
  if (!(error instanceof LiquidError)) {
    return { at: 0, expected: 'expected less nesting' };
  }
  const known = expectations.find(([pattern]) => pattern.test(error.message));
  return { at: error.token.begin, expected: known?.[1] ?? 'expected a value or a filter' };
}

/** The engine wraps our errors, once for each level. Its own messages may quote data. */
function asExpressionError(error: unknown): ExpressionError {
  let inner = error;
  for (;;) {
    if (inner instanceof ExpressionError) return inner;
    if (!(inner instanceof LiquidError) || inner.originalError === undefined) break;
    inner = inner.originalError;
  }
  return new ExpressionError('cannot be evaluated with this data');
}
