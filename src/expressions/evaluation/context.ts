/** Resolves names for an expression: liquidjs's context, restricted where it trusts its input. */
import { Context, Drop, type Liquid, type Scope as LiquidScope } from 'liquidjs';
import { nameWork } from './budget.ts';
import type { Evaluation } from './evaluation.ts';

/** Reading one member: liquidjs runs a generator for each step of a path. */
const readWork = 700;

/** Looking up a name in one more enclosing loop. */
const scopeWork = 30;

/** The members of `forloop` that expressions may read. The others are methods, which liquidjs would call. */
const loopMembers = new Set<unknown>([
  'first',
  'index',
  'index0',
  'last',
  'length',
  'rindex',
  'rindex0',
]);

export class EvaluationContext extends Context {
  readonly evaluation: Evaluation;
  #depth = 0;

  constructor(engine: Liquid, scope: object, evaluation: Evaluation) {
    // liquidjs does not export the class of its limits; this has the two methods it calls.
    const limit = evaluation.budget.limit as unknown as Context['memoryLimit'];
    super(
      scope,
      engine.options,
      { sync: true },
      { liquid: engine, memoryLimit: limit, renderLimit: limit },
    );
    this.evaluation = evaluation;
  }

  static evaluationOf(context: Context): Evaluation {
    if (context instanceof EvaluationContext) return context.evaluation;
    throw new TypeError('an expression is evaluated in an EvaluationContext');
  }

  override spawn(scope: object = {}): Context {
    return new EvaluationContext(this.liquid, scope, this.evaluation);
  }

  override push(scope: object): number {
    this.#depth += 1;
    return super.push(scope);
  }

  override pop(): object | undefined {
    this.#depth -= 1;
    return super.pop();
  }

  override readProperty(value: LiquidScope, key: string | number | Drop): unknown {
    this.evaluation.budget.use(readWork + this.#depth * scopeWork);
    if (value instanceof Drop && !loopMembers.has(key)) return undefined;
    const member: unknown = super.readProperty(value, key);
    // Counting the members of an object goes through all of them.
    if (key === 'size') this.evaluation.budget.use(Number(member) * nameWork);
    return member;
  }
}
