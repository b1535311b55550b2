/** A bounded cache whose entries are forgotten after a fixed age. */
import type { Clock } from './clock.ts';

export interface ExpiringMapOptions {
  readonly clock: Clock;
  readonly ageMsMax: number;
  readonly entriesMax: number;
}

export class ExpiringMap<K, V> {
  readonly #options: ExpiringMapOptions;
  readonly #entries = new Map<K, { value: V; until: number }>();

  constructor(options: ExpiringMapOptions) {
    this.#options = options;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.until > this.#options.clock.now()) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  set(key: K, value: V): void {
    const { clock, ageMsMax, entriesMax } = this.#options;
    // Entries stand in the order in which they were set, so the first is the oldest.
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= entriesMax && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: clock.now() + ageMsMax });
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
