/** What an expression is evaluated with. */
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

/** A fresh budget, for a request that reads; `random` is what aliases are drawn from. */
export function newEvaluation(random: Random = systemRandom): Evaluation {
  return { budget: new Budget(), random };
}

/** The same for a request that writes: what it may cost altogether is what one evaluation may. */
export function newWriteEvaluation(): Evaluation {
  return { budget: new Budget(workMax), random: systemRandom };
}
