/** What evaluations may cost, one and those of a request: counted in work and not in time, to be repeatable. */
import { ExpressionError } from './error.ts';

/**
 * Units of work, of which a character costs one: a megabyte of text can be gone through 16 times.
 * What takes longer costs more, by measurement, so that no evaluation holds the process for long.
 */
export const workMax = 16_000_000;

/** What all evaluations of one request may cost together. */
const requestWorkMax = 2 * workMax;

/** What each of them may cost in any case, so that one expensive mask does not hide what cheap ones show. */
const workMin = 50_000;

/** Reaching a member of a list, and of an object. */
const itemWork = 2;
export const memberWork = 16;

/** A list and an object by themselves, however few members they have. */
const listWork = 16;
const objectWork = 32;

/** Writing a number as text: a small integer, and any other. */
const smallNumberWork = 8;
const numberWork = 40;
const smallNumberMax = 2 ** 30;

/** What V8 takes for a list within a list, and for any other member, when it makes a text of them. */
const nestedTextWork = 400;
const memberTextWork = 80;

/** What joining one more text takes, however short. */
const itemTextWork = 16;

/** Running a filter, whatever it is given. */
export const filterWork = 800;

/** Pieces of text, outputs and tags one evaluation may run, each pass of a loop counted. */
export const stepsMax = 20_000;

/** A step takes as long as so many units of work. */
const stepWork = 500;

export class Budget {
  /** What the request has left for this evaluation and those after it. */
  #left = requestWorkMax;
  /** What this evaluation was given, and what it has left of that. */
  #given = workMax;
  #work = workMax;
  #steps = stepsMax;

  /** Another evaluation of the same request. */
  begin(): void {
    this.#left -= this.#given - this.#work;
    this.#given = Math.max(workMin, Math.min(workMax, this.#left));
    this.#work = this.#given;
    this.#steps = stepsMax;
  }

  /** Spends work before it is done. liquidjs calls this for its own allocations. */
  use(amount: number): void {
    // The engine passes what a caller wrote, such as `slice: 0, 'x'`; a value that is not a number costs nothing.
    const cost = Number(amount);
    if (cost > 0) this.#work -= cost;
    if (this.#work < 0) throw this.#spent();
  }

  /** liquidjs calls this with the time before each piece of a template; only the call is counted. */
  check(_now?: number): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new ExpressionError(`needs more than ${stepsMax} steps`);
    this.use(stepWork);
  }

  /** Spends what it costs to go through a whole value, and to write it as text, `times` over. */
  useFor(value: unknown, times = 1): void {
    if (typeof value === 'string') {
      this.use(value.length * times);
    } else if (typeof value === 'number') {
      this.use((isSmall(value) ? smallNumberWork : numberWork) * times);
    } else if (Array.isArray(value)) {
      this.use((value.length * itemWork + listWork) * times);
      for (const item of value) this.useFor(item, times);
    } else if (typeof value === 'object' && value !== null) {
      const members: readonly unknown[] = Object.values(value);
      this.use((members.length * memberWork + objectWork) * times);
      for (const member of members) this.useFor(member, times);
    }
  }

  /** Spends what it costs to make a text of a value as JavaScript does, which looks into lists alone. */
  useForText(value: unknown, times = 1): void {
    if (!Array.isArray(value)) {
      this.use((typeof value === 'string' ? value.length : memberTextWork) * times);
      return;
    }
    this.use((nestedTextWork + value.length * itemTextWork) * times);
    for (const item of value) this.useForText(item, times);
  }

  #spent(): ExpressionError {
    return new ExpressionError(
      this.#given === workMax
        ? `needs more than ${workMax} units of work`
        : `needs more than is left of the ${requestWorkMax} units of work of this request`,
    );
  }
}

function isSmall(number: number): boolean {
  return Number.isInteger(number) && Math.abs(number) < smallNumberMax;
}
