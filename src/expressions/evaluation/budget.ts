/** The budget of one evaluation and of one request, in units of work and not in time, to be repeatable. */
import { ExpressionError } from './error.ts';

/**
 * Units of work. A character costs one, so that an evaluation can read a megabyte of text twelve times.
 * The other costs are measured in relation to it, so that no evaluation blocks the process for long.
 */
export const workMax = 12_000_000;

/** The budget of all evaluations of one request that reads; it evaluates them in several turns. */
export const requestWorkMax = 2 * workMax;

/** The guaranteed budget of each evaluation, so that one expensive mask does not hide the output of cheap ones. */
const workMin = 50_000;

/** Accessing a member of a list, and of an object, for which V8 keeps a hash table when it has many. */
const itemWork = 6;
const memberWork = 64;

/** Listing the names of an object, for each of them. */
export const nameWork = 64;

/** The fixed cost of a list and of an object, without its members. */
const listWork = 23;
const objectWork = 23;

/** For each level of nesting: V8 checks a value against all of its ancestors for cycles. */
const levelWork = 2;

/** Converting a number to a string: a small integer, another integer that V8 stores as one, and any other number. */
const smallNumberWork = 12;
const smallNumberMax = 10_000;
const integerWork = 24;
const integerMax = 2 ** 30;
const numberWork = 36;

/** The cost of a list within a list, and of any other member, when V8 converts them to a string. */
const nestedTextWork = 400;
const memberTextWork = 80;

/** The fixed cost of joining one more string. */
const itemTextWork = 60;

/** The fixed cost of a filter. */
export const filterWork = 800;

/** Evaluating one argument of a filter. */
export const argumentWork = 600;

/** Strings, outputs, and tags that one evaluation may run. Each iteration of a loop counts. */
export const stepsMax = 15_000;

/** The units of work of a step. */
const stepWork = 600;

/** The units of work of an allocation that liquidjs counts itself: a character, or a number of a range. */
const countedWork = 4;

export class Budget {
  /** The rest of the request's budget, for this evaluation and later ones. */
  #left: number;
  readonly #requestMax: number;
  /** The budget of this evaluation, and the rest of it. */
  #given = workMax;
  #work = workMax;
  #steps = stepsMax;

  /** `requestMax` is for all evaluations together. */
  constructor(requestMax = requestWorkMax) {
    this.#requestMax = requestMax;
    this.#left = requestMax;
  }

  /** The rest of the budget, to be spent again with each attempt. */
  copy(): Budget {
    const copy = new Budget(this.#requestMax);
    copy.#left = this.#left - (this.#given - this.#work);
    copy.#given = 0;
    copy.#work = 0;
    return copy;
  }

  /** Another evaluation of the same request. */
  begin(): void {
    this.#left -= this.#given - this.#work;
    this.#given = Math.max(workMin, Math.min(workMax, this.#left));
    this.#work = this.#given;
    this.#steps = stepsMax;
  }

  /** Spends work before it is done. */
  use(amount: number): void {
    if (amount > 0) this.#work -= amount;
    if (this.#work < 0) throw this.#spent();
  }

  /** liquidjs calls this for its own allocations, and before each node of a template. */
  readonly limit = {
    use: (amount: unknown): void => {
      // The engine passes the caller's argument, such as `slice: 0, 'x'`. A value that is not a number costs nothing.
      this.use(Number(amount) * countedWork);
    },
    check: (): void => this.check(),
  };

  /** Before each node of a template. */
  check(): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new ExpressionError(`needs more than ${stepsMax} steps`);
    this.use(stepWork);
  }

  /** Spends the cost of visiting a whole value and of writing it as a string, `times` over. */
  useFor(value: unknown, times = 1, level = 0): void {
    if (Array.isArray(value)) {
      this.use((value.length * itemWork + listWork + level * levelWork) * times);
      let plain = 0;
      for (const item of value) {
        if (typeof item === 'object') this.useFor(item, times, level + 1);
        else plain += plainWork(item);
      }
      this.use(plain * times);
    } else if (typeof value === 'object' && value !== null) {
      const names = Object.keys(value);
      this.use((names.length * memberWork + objectWork + level * levelWork) * times);
      for (const name of names) {
        this.use(name.length * times);
        this.useFor((value as Record<string, unknown>)[name], times, level + 1);
      }
    } else {
      this.use(plainWork(value) * times);
    }
  }

  /** Spends the cost of JavaScript's own conversion of a value to a string, which descends into lists only. */
  useForText(value: unknown, times = 1): void {
    if (!Array.isArray(value)) {
      this.use((typeof value === 'string' ? value.length : memberTextWork) * times);
      return;
    }
    this.use((nestedTextWork + value.length * itemTextWork) * times);
    for (const item of value) this.useForText(item, times);
  }

  /** The same for all lists within a value, at any depth. */
  useForLists(value: unknown, times: number): void {
    if (Array.isArray(value)) {
      this.useForText(value, times);
    } else if (typeof value === 'object' && value !== null) {
      for (const member of Object.values(value)) this.useForLists(member, times);
    }
  }

  #spent(): ExpressionError {
    return new ExpressionError(
      this.#given === workMax
        ? `needs more than ${workMax} units of work`
        : `needs more than is left of the ${this.#requestMax} units of work of this request`,
    );
  }
}

/** The cost of a value without members. */
function plainWork(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'number') return 0;
  const size = Math.abs(value);
  if (!Number.isInteger(value) || size >= integerMax) return numberWork;
  return size < smallNumberMax ? smallNumberWork : integerWork;
}
