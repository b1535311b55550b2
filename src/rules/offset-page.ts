/** Pages of lists that are counted: by number, or from the cursor of an earlier page on. */

import type { Instant } from '../base/clock.ts';
import { invalid } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { openCursor, sealCursor } from '../keys/cursor.ts';
import type { Query, Store } from '../store/store.ts';
import type { Keys } from './proven-row.ts';

/** The place in a list, as the query of that list has it. */
type Position = readonly (string | number)[];

/** @throws VaultError `validation_failed` for what is no cursor of this list. */
export function positionOfCursor<P extends Position>(
  key: Parameters<typeof openCursor>[0],
  route: string,
  text: string | undefined,
): P | undefined {
  if (text === undefined) return undefined;
  const position = openCursor(key, route, text);
  if (position === undefined) throw invalid('start', 'must be the cursor of an earlier response');
  return position as unknown as P;
}

/** The requested page of a list. */
export interface PageQuery {
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
  /** Cursor of an earlier response; replaces `page`. */
  readonly start?: string;
}

/** Newest first, ties by id. */
type NewestFirst<Id> = readonly [at: Instant, id: Id];

/** Where a page begins, and how many rows of it are read. */
export interface PageBounds<Id> {
  readonly limit: number;
  /** Continues after this row; otherwise so many are skipped. */
  readonly after: NewestFirst<Id> | undefined;
  readonly skip: number;
}

/** A list of rows, newest first. */
interface OffsetList<R, Id, Filter> {
  readonly route: string;
  count(filter: Filter): Query<{ readonly count: number }>;
  page(filter: Filter & PageBounds<Id>): Query<R>;
  idOf(row: R): Id;
}

interface RowsOfPage<R> {
  readonly rows: readonly R[];
  /** As responses have it. */
  readonly pagination: object;
}

const sizeDefault = 20;

/**
 * How to read a page of a list. Where the filter names no valid id, nothing is read.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function offsetPage<
  R extends { readonly created_at: Instant },
  Id extends string,
  Filter extends { readonly tenant: TenantId; readonly ids?: readonly Id[] | undefined },
>(
  list: OffsetList<R, Id, Filter>,
  { keyring }: Keys,
  { filter, query }: { readonly filter: Filter; readonly query: PageQuery },
): (store: Store) => Promise<RowsOfPage<R>> {
  const { route } = list;
  const key = keyring.secret('cursor');
  const { page = 1, size = sizeDefault, start } = query;
  const after = positionOfCursor<NewestFirst<Id>>(key, route, start);
  return async (store) => {
    const isEmpty = filter.ids?.length === 0;
    const [counted] = isEmpty ? [] : await store.select(list.count(filter));
    // One row more than the page holds, which says whether another page follows.
    const bounds = { limit: size + 1, after, skip: (page - 1) * size };
    const found = isEmpty ? [] : await store.select(list.page({ ...filter, ...bounds }));
    const rows = found.slice(0, size);
    const last = found.length > size ? rows.at(-1) : undefined;
    const next = last && sealCursor(key, route, [last.created_at, list.idOf(last)]);
    const total = counted?.count ?? 0;
    const pagination = {
      total_items: total,
      page_number: page,
      page_size: size,
      total_pages: size === 0 ? 0 : Math.ceil(total / size),
      ...(next && { next }),
    };
    return { rows, pagination };
  };
}
