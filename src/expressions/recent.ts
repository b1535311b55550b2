/** A bounded memory for what is costly to make again. */

/**
 * Keeps at most `max` values, the recently used ones first to stay: two generations, of which the
 * older is dropped whole when the younger is full, so that neither use nor eviction needs a list.
 */
export class Recent<T> {
  readonly #generationMax: number;
  #younger = new Map<string, T>();
  #older = new Map<string, T>();

  constructor(max: number) {
    this.#generationMax = Math.ceil(max / 2);
  }

  get(key: string): T | undefined {
    const value = this.#younger.get(key);
    if (value !== undefined) return value;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, value: T): void {
    if (this.#younger.size >= this.#generationMax) {
      this.#older = this.#younger;
      this.#younger = new Map();
    }
    this.#younger.set(key, value);
  }
}
