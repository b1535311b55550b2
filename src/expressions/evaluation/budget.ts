/** What evaluations may cost, one and those of a request: counted in work and not in time, to be repeatable. */
import { ExpressionError } from './error.ts';

/**
 * Units of work, of which a character costs one: a megabyte of text can be gone through twelve times.
 * What takes longer costs more, by measurement, so that no evaluation holds the process for long.
 */
export const workMax = 12_000_000;

/** What all evaluations of one request may cost together: where it reads, which it does in parts. */
export const requestWorkMax = 2 * workMax;

/** What each of them may cost in any case, so that one expensive mask does not hide what cheap ones show. */
const workMin = 50_000;

/** Reaching a member of a list, and of an object, of which V8 keeps a table when there are many. */
const itemWork = 6;
const memberWork = 64;

/** Listing the names of an object, for each of them. */
export const nameWork = 64;

/** A list and an object by themselves, however few members they have. */
const listWork = 23;
const objectWork = 23;

/** For each level that a list or an object is nested in others: V8 looks through all of them for itself. */
const levelWork = 2;

/** Writing a number as text: a small integer, one that V8 keeps as such, and any other. */
const smallNumberWork = 12;
const smallNumberMax = 10_000;
const integerWork = 24;
const integerMax = 2 ** 30;
const numberWork = 36;

/** What V8 takes for a list within a list, and for any other member, when it makes a text of them. */
const nestedTextWork = 400;
const memberTextWork = 80;

/** What joining one more text takes, however short. */
const itemTextWork = 60;

/** Running a filter, whatever it is given. */
export const filterWork = 800;

/** Evaluating an argument of it. */
export const argumentWork = 600;

/** Pieces of text, outputs and tags one evaluation may run, each pass of a loop counted. */
export const stepsMax = 15_000;

/** A step takes as long as so many units of work. */
const stepWork = 600;

/** What liquidjs counts for itself, a character or a number of a range, takes so many. */
const countedWork = 4;

export class Budget {
  /** What the request has left for this evaluation and those after it. */
  #left: number;
  readonly #requestMax: number;
  /** What this evaluation was given, and what it has left of that. */
  #given = workMax;
  #work = workMax;
  #steps = stepsMax;

  /** `requestMax` is for all evaluations together. */
  constructor(requestMax = requestWorkMax) {
    this.#requestMax = requestMax;
    this.#left = requestMax;
  }

  /** What is left, to be spent again each time that the same is tried. */
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

  /** What liquidjs calls for its own allocations, and before each piece of a template. */
  readonly limit = {
    use: (amount: unknown): void => {
      // The engine passes what a caller wrote, such as `slice: 0, 'x'`; a value that is not a number costs nothing.
      this.use(Number(amount) * countedWork);
    },
    check: (): void => this.check(),
  };

  /** Before each piece of a template. */
  check(): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new ExpressionError(`needs more than ${stepsMax} steps`);
    this.use(stepWork);
  }

  /** Spends what it costs to go through a whole value, and to write it as text, `times` over. */
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

  /** Spends what it costs to make a text of a value as JavaScript does, which looks into lists alone. */
  useForText(value: unknown, times = 1): void {
    if (!Array.isArray(value)) {
      this.use((typeof value === 'string' ? value.length : memberTextWork) * times);
      return;
    }
    this.use((nestedTextWork + value.length * itemTextWork) * times);
    for (const item of value) this.useForText(item, times);
  }

  /** The same of the lists among the members of a value, however deep in it. */
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

/** What a value takes that has no members. */
function plainWork(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'number') return 0;
  const size = Math.abs(value);
  if (!Number.isInteger(value) || size >= integerMax) return numberWork;
  return size < smallNumberMax ? smallNumberWork : integerWork;
}
