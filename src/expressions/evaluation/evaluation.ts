/** The input of an evaluation: variables, budget, and randomness. */
import type { Json } from '../../base/json.ts';
import { pooledRandom, type Random } from '../../base/random.ts';
import { Budget, workMax } from './budget.ts';

/** The variables an expression may name, for example `data` and `metadata`. */
export interface ExpressionScope {
  readonly [name: string]: Json | undefined;
}

/** What the expressions of one request share, so that their cost adds up. */
export interface Evaluation {
  readonly budget: Budget;
  readonly random: Random;
}

/** A compiled expression or a part of one. */
export type Evaluate = (scope: ExpressionScope, evaluation: Evaluation) => Json | undefined;

const systemRandom = pooledRandom();

/** A new budget, for a request that reads. Aliases are drawn from `random`. */
export function newEvaluation(random: Random = systemRandom): Evaluation {
  return { budget: new Budget(), random };
}

/** The same for a request that writes: all of its evaluations share the budget of one. */
export function newWriteEvaluation(): Evaluation {
  return { budget: new Budget(workMax), random: systemRandom };
}
