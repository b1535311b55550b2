/** A list, which is read page by page while it is iterated. */

/**
 * A page of a list.
 *
 * @example
 * ```ts
 * import type { Page, Token } from '@strongroom/client';
 *
 * const print = (page: Page<Token>) => console.log(page.data.length, page.pagination.next);
 * for await (const page of vault.tokens.list({ size: 100 }).pages()) print(page);
 * ```
 */
export interface Page<Item> {
  /** Where the page is in the list. */
  readonly pagination: {
    /** How many items a page has at most. */
    readonly page_size: number;
    /** How many items there are in total, in lists that count them. */
    readonly total_items?: number;
    /** The cursor of the next page; absent on the last one. */
    readonly next?: string;
  };
  /** The items of the page. */
  readonly data: readonly Item[];
}

/**
 * A list that was not read yet. Iterating it reads page after page, each when its first item is asked for; `break` ends
 * it.
 *
 * @example
 * ```ts
 * for await (const token of vault.tokens.list({ type: 'card' })) {
 *   console.log(token.id);
 * }
 * ```
 */
export class List<Item> implements AsyncIterable<Item> {
  readonly #readPage: (start: string | undefined) => Promise<Page<Item>>;

  /** @param readPage gives the page at a cursor, or the first one. */
  constructor(readPage: (start: string | undefined) => Promise<Page<Item>>) {
    this.#readPage = readPage;
  }

  /**
   * The pages, one request each.
   *
   * @example
   * ```ts
   * for await (const page of vault.tokens.list({ size: 100 }).pages()) {
   *   console.log(page.data.length);
   * }
   * ```
   */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    let start: string | undefined;
    do {
      const page = await this.#readPage(start);
      yield page;
      start = page.pagination.next;
    } while (start !== undefined);
  }

  /** The items, page by page. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  /**
   * The first items as an array: all of them, unless `limit` is given.
   *
   * @example
   * ```ts
   * const newest = await vault.tokens.list({ type: 'card' }).toArray(10);
   * ```
   */
  async toArray(limit = Number.POSITIVE_INFINITY): Promise<Item[]> {
    const items: Item[] = [];
    for await (const item of this) {
      if (items.length >= limit) break;
      items.push(item);
      if (items.length >= limit) break;
    }
    return items;
  }
}
