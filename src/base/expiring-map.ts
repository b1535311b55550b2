/** A bounded cache whose entries are forgotten after a fixed age. */
import type { Clock } from './clock.ts';

export interface ExpiringMapOptions {
  readonly clock: Clock;
  readonly ageMsMax: number;
  readonly entriesMax: number;
  /** If its result differs from the previous one, all entries are dropped first. */
  readonly epoch?: () => number;
}

/** The moment before the first read of the value that is going to be set. */
export interface ReadMoment {
  readonly at: number;
  /** How many times entries had been dropped by then. */
  readonly forgotten: number;
}

interface Entry<V> {
  readonly value: V;
  readonly at: number;
}

export class ExpiringMap<K, V> {
  readonly #options: ExpiringMapOptions;
  readonly #entries = new Map<K, Entry<V>>();
  #forgotten = 0;
  #epoch: number | undefined;

  constructor(options: ExpiringMapOptions) {
    this.#options = options;
    this.#epoch = options.epoch?.();
  }

  get(key: K): V | undefined {
    this.#enterEpoch();
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (this.#isFresh(entry)) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  /** The entries that are not too old. */
  *entries(): Generator<readonly [K, V]> {
    this.#enterEpoch();
    for (const [key, entry] of this.#entries) if (this.#isFresh(entry)) yield [key, entry.value];
  }

  reading(): ReadMoment {
    this.#enterEpoch();
    return { at: this.#options.clock.now(), forgotten: this.#forgotten };
  }

  /**
   * The age counts from the read. The entry is not stored if any entry was dropped since, because it may be outdated.
   */
  set(key: K, value: V, { at, forgotten } = this.reading()): void {
    this.#enterEpoch();
    if (forgotten !== this.#forgotten) return;
    this.#entries.delete(key);
    this.#makeRoom();
    this.#entries.set(key, { value, at });
  }

  delete(key: K): void {
    this.#forgotten += 1;
    this.#entries.delete(key);
  }

  clear(): void {
    this.#forgotten += 1;
    this.#entries.clear();
  }

  #enterEpoch(): void {
    const epoch = this.#options.epoch?.();
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.clear();
  }

  /** Entries are in insertion order, so the first is the oldest. */
  #makeRoom(): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size < this.#options.entriesMax && this.#isFresh(entry)) return;
      this.#entries.delete(key);
    }
  }

  /** An entry must not become valid again when the clock is set back. */
  #isFresh({ at }: Entry<V>): boolean {
    const age = this.#options.clock.now() - at;
    return age >= 0 && age < this.#options.ageMsMax;
  }
}
