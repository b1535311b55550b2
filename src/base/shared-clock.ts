/** A clock in memory that threads share: for a process that does not run by the machine's time. */
import { type Clock, type Instant, parseInstant } from './clock.ts';

/** Of the two cells: where the clock stands, 0 when it runs, and how far it is ahead of that. */
const [standing, ahead] = [0, 1];

export class SharedClock implements Clock {
  /** What another thread makes the same clock of. */
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  /** @param memory of the clock of another thread. */
  constructor(memory = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  /** Moves only when it is advanced. */
  static standingAt(milliseconds: number): SharedClock {
    const clock = new SharedClock();
    Atomics.store(clock.#cells, standing, BigInt(milliseconds));
    return clock;
  }

  now(): Instant {
    const from = Number(Atomics.load(this.#cells, standing)) || Date.now();
    return parseInstant(from + Number(Atomics.load(this.#cells, ahead)));
  }

  /** On all threads at once. */
  advance(milliseconds: number): void {
    Atomics.add(this.#cells, ahead, BigInt(milliseconds));
  }
}
