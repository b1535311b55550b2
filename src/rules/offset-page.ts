/** Pages of lists that are counted: by number, or from the cursor of an earlier page on. */

import type { Instant } from '../base/clock.ts';
import { invalid } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { openCursor, sealCursor } from '../keys/cursor.ts';
import type { ProvenTable } from '../store/row-states.ts';
import type { Query, ScanPayer, Store } from '../store/store.ts';
import { type Unproven, unverifiedColumns } from '../store/stored-row.ts';
import { nameOf } from './bound-row.ts';
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
interface OffsetList<T extends ListedTable, Id, Filter> {
  readonly route: string;
  readonly table: T;
  count(filter: Filter): Query<{ readonly count: number }>;
  page(filter: Filter & PageBounds<Id>): Query<Unproven<T>>;
}

type ListedTable = Extract<
  ProvenTable,
  'applications' | 'approvals' | 'proxies' | 'reactors' | 'sessions'
>;

interface RowsOfPage<T extends ListedTable> {
  readonly rows: readonly Unproven<T>[];
  /** As responses have it. */
  readonly pagination: object;
}

const sizeDefault = 20;

/**
 * How to read a page of a list. A list takes the time that its rows take to be counted and sorted, so it waits for its
 * turn as a scan. Where the filter names no valid id, nothing is read.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function offsetPage<
  T extends ListedTable,
  Id extends string,
  Filter extends { readonly tenant: TenantId; readonly ids?: readonly Id[] | undefined },
>(
  list: OffsetList<T, Id, Filter>,
  { keyring }: Keys,
  { filter, query }: { readonly filter: Filter; readonly query: PageQuery },
): (store: Pick<Store, 'scan'>, payer: ScanPayer) => Promise<RowsOfPage<T>> {
  const { route } = list;
  const key = keyring.secret('cursor');
  const { page = 1, size = sizeDefault, start } = query;
  const after = positionOfCursor<NewestFirst<Id>>(key, route, start);
  return async (store, payer) => {
    const isEmpty = filter.ids?.length === 0;
    const [counted] = isEmpty ? [] : await store.scan(list.count(filter), payer);
    // One row more than the page holds, which says whether another page follows.
    const bounds = { limit: size + 1, after, skip: (page - 1) * size };
    const query = list.page({ ...filter, ...bounds }) as Query<Unproven<ListedTable>>;
    const found = (isEmpty ? [] : await store.scan(query, payer)) as Unproven<T>[];
    const rows = found.slice(0, size);
    const last = found.length > size ? rows.at(-1) : undefined;
    const next = last && sealCursor(key, route, positionOf(list.table, last));
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

/** The database orders by the time of creation, whether or not the vault wrote it. */
function positionOf<T extends ListedTable>(table: T, row: Unproven<T>): Position {
  const { created_at } = unverifiedColumns(row) as { readonly created_at: Instant };
  return [created_at, nameOf(table, row).id];
}
