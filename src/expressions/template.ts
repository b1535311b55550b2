/** Any JSON whose strings are expressions: masks. */
import { invalid } from '../base/errors.ts';
import { isObject, type Json, type JsonObject, nestingMax } from '../base/json.ts';
import { memberPath } from './attribute-path.ts';
import {
  type Evaluate,
  type Evaluation,
  type ExpressionScope,
  newEvaluation,
} from './evaluation/evaluation.ts';
import { compileExpression, guarded } from './expression.ts';

/** A compiled template or a part of one. */
export type CompiledTemplate = Evaluate;

/** Expressions one template may have. */
export const expressionsMax = 500;

/**
 * Compiles the value of the attribute at `path`.
 *
 * @throws VaultError 400 naming the member whose string is not an expression, such as `mask.number`.
 */
export function compileTemplate(json: Json, path: string): CompiledTemplate {
  const counted = { expressions: 0 };
  const template = compileNode(json, { path, level: 1 }, counted);
  if (counted.expressions <= expressionsMax) return template;
  throw invalid(path, `must have at most ${expressionsMax} expressions`);
}

interface TemplatePosition {
  readonly path: string;
  readonly level: number;
}

function compileNode(
  json: Json,
  place: TemplatePosition,
  counted: { expressions: number },
): CompiledTemplate {
  const { path, level } = place;
  if (level > nestingMax) {
    throw invalid(path, `must not be nested deeper than ${nestingMax} levels`);
  }
  const below = (value: Json, step: string) =>
    compileNode(value, { path: step, level: level + 1 }, counted);
  if (typeof json === 'string') {
    counted.expressions += 1;
    // Beyond the limit, nothing more is compiled, because the template will be rejected.
    if (counted.expressions > expressionsMax) return () => json;
    const { constant, run } = compileExpression(json, path);
    return constant || level === 1 ? run : written(run);
  }
  if (Array.isArray(json)) return listOf(json.map((item, at) => below(item, `${path}[${at}]`)));
  if (!isObject(json)) return () => json;
  return objectOf(
    Object.entries(json).map(([name, value]) => ({
      name,
      evaluate: below(value, memberPath(path, name)),
    })),
  );
}

/** The cost of a character that one of several expressions writes: together they may write a few megabytes. */
const writtenWork = 2;

function written(run: Evaluate): CompiledTemplate {
  return (scope, evaluation) => {
    const value = run(scope, evaluation);
    evaluation.budget.useFor(value, writtenWork);
    return value;
  };
}

/**
 * The template with every expression replaced by its value. A member whose expression gives null is
 * omitted, so that a mask does not reveal what the data lacks. In lists, null keeps its place.
 *
 * @throws ExpressionError and nothing else.
 */
export function evaluateTemplate(
  template: CompiledTemplate,
  scope: ExpressionScope,
  evaluation: Evaluation = newEvaluation(),
): Json | undefined {
  evaluation.budget.begin();
  return guarded(() => template(scope, evaluation));
}

function listOf(items: readonly CompiledTemplate[]): CompiledTemplate {
  return (scope, evaluation) => items.map((evaluate) => evaluate(scope, evaluation) ?? null);
}

function objectOf(
  members: readonly { name: string; evaluate: CompiledTemplate }[],
): CompiledTemplate {
  return (scope, evaluation) => {
    const result: Record<string, Json> = {};
    for (const { name, evaluate } of members) {
      const value = evaluate(scope, evaluation);
      if (value !== undefined && value !== null) setMember(result, name, value);
    }
    return result as JsonObject;
  };
}

/** An assignment to `__proto__` would replace the prototype and not add a member. */
export function setMember(target: Record<string, Json>, name: string, value: Json): void {
  if (name !== '__proto__') target[name] = value;
  else Object.defineProperty(target, name, { value, enumerable: true, writable: true });
}
