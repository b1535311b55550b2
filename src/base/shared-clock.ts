/** A clock in memory that threads share, for a process that does not use the machine's time. */
import { type Clock, type Instant, parseInstant } from './clock.ts';

/** The two cells: the time at which the clock stands, or 0 if it runs; and its offset from that. */
const [standing, ahead] = [0, 1];

export class SharedClock implements Clock {
  /** With this memory, another thread creates the same clock. */
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  /** @param memory of the clock of another thread. */
  constructor(memory = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  /** The clock moves only when it is advanced. */
  static standingAt(milliseconds: number): SharedClock {
    const clock = new SharedClock();
    Atomics.store(clock.#cells, standing, BigInt(milliseconds));
    return clock;
  }

  now(): Instant {
    const from = Number(Atomics.load(this.#cells, standing)) || Date.now();
    return parseInstant(from + Number(Atomics.load(this.#cells, ahead)));
  }

  /** Advances the clock on all threads at once. */
  advance(milliseconds: number): void {
    Atomics.add(this.#cells, ahead, BigInt(milliseconds));
  }
}
