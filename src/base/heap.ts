/** A priority queue of items whose priority changes while they are in it. */
export class Heap<T> {
  readonly #isBefore: (a: T, b: T) => boolean;
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** The items in no particular order; the first is at 0. */
  at(place: number): T | undefined {
    return this.#items[place];
  }

  /** Adds the item, or moves it to the place of its current priority. */
  put(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) this.#rise(item, this.#items.length);
    else this.#settle(item, place);
  }

  delete(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    const last = this.#items.pop() as T;
    if (last !== item) this.#settle(last, place);
  }

  #settle(item: T, place: number): void {
    if (!this.#rise(item, place)) this.#sink(item, place);
  }

  /** @returns false if it stays at that place. */
  #rise(item: T, from: number): boolean {
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const other = this.#items[above] as T;
      if (!this.#isBefore(item, other)) break;
      this.#set(other, place);
      place = above;
    }
    this.#set(item, place);
    return place !== from;
  }

  #sink(item: T, from: number): void {
    let place = from;
    for (;;) {
      const left = 2 * place + 1;
      if (left >= this.#items.length) break;
      const isRight =
        left + 1 < this.#items.length &&
        this.#isBefore(this.#items[left + 1] as T, this.#items[left] as T);
      const below = isRight ? left + 1 : left;
      const other = this.#items[below] as T;
      if (!this.#isBefore(other, item)) break;
      this.#set(other, place);
      place = below;
    }
    if (place !== from) this.#set(item, place);
  }

  #set(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }
}
