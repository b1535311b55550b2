/** A list in insertion order with removal in constant time. */

export interface ListLink<T> {
  readonly item: T;
  before: ListLink<T> | undefined;
  after: ListLink<T> | undefined;
  isIn: boolean;
}

/** In a `Set`, finding the first item takes longer the more items were removed before it. */
export class LinkedList<T> {
  #first: ListLink<T> | undefined;
  #last: ListLink<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.item;
  }

  add(item: T): ListLink<T> {
    const link: ListLink<T> = { item, before: this.#last, after: undefined, isIn: true };
    if (this.#last) this.#last.after = link;
    else this.#first = link;
    this.#last = link;
    this.#size += 1;
    return link;
  }

  /** @returns false if it was removed already. */
  remove(link: ListLink<T>): boolean {
    if (!link.isIn) return false;
    const { before, after } = link;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    // A removed link of V8's old generation would keep all later ones in memory until the next full collection.
    link.before = undefined;
    link.after = undefined;
    link.isIn = false;
    this.#size -= 1;
    return true;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let link = this.#first; link; link = link.after) yield link.item;
  }
}
