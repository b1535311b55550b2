/** The text that outputs and the words around them add up to. */
import { type Emitter, toValue } from 'liquidjs';
import type { Budget } from './budget.ts';
import { textOf } from './result.ts';

/** What an output takes besides the text that is written. */
const outputWork = 400;

/** Collects the pieces as liquidjs renders them, written as the language writes values. */
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
