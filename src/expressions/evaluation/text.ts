/** Builds the string that a template renders to. */
import { type Emitter, toValue } from 'liquidjs';
import type { Budget } from './budget.ts';
import { textOf } from './result.ts';

/** The cost of an output in addition to its characters. */
const outputWork = 400;

/** Collects the pieces that liquidjs renders, in the language's own notation for values. */
export class TextEmitter implements Emitter {
  buffer = '';
  readonly #budget: Budget;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  write(piece: unknown): void {
    const value: unknown = toValue(piece);
    this.#budget.use(outputWork);
    this.#budget.useFor(value);
    this.buffer += textOf(value);
  }
}
