/** A bounded cache for results that are expensive to compute. */

/** The size of an entry in addition to the characters of its key. */
const entrySize = 100;

/**
 * Keeps the most recently used entries. The limit counts the characters of the keys, because what is compiled from a
 * string grows with it. There are two generations. When the younger one is full, the older one is dropped, so that
 * neither use nor eviction needs a list.
 */
export class LruCache<T> {
  readonly #generationMax: number;
  #younger = new Map<string, T>();
  #older = new Map<string, T>();
  #size = 0;

  constructor(sizeMax: number) {
    this.#generationMax = sizeMax / 2;
  }

  get(key: string): T | undefined {
    const value = this.#younger.get(key);
    if (value !== undefined) return value;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  delete(key: string): void {
    this.#younger.delete(key);
    this.#older.delete(key);
  }

  set(key: string, value: T): void {
    this.#size += key.length + entrySize;
    if (this.#size > this.#generationMax) {
      this.#older = this.#younger;
      this.#younger = new Map();
      this.#size = key.length + entrySize;
    }
    this.#younger.set(key, value);
  }
}
