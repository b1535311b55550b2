/** Pages of lists that are counted: by number, or from the cursor of an earlier page on. */
import { openCursor, sealCursor } from '../crypto/cursor.ts';
import type { Clock, Instant } from '../lib/clock.ts';
import { invalid } from '../lib/errors.ts';
import { type ProxyId, parseUuid, type ReactorId, type TenantId } from '../lib/ids.ts';
import type { Query, Store } from '../store/store.ts';
import type { Caller } from './caller.ts';
import { entryOf } from './log-entries.ts';
import type { Decide } from './operation.ts';

/** The place in a list, as the query of that list has it. */
export type Position = readonly (string | number)[];

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

export interface OffsetPage {
  readonly total: number;
  /** From 1. */
  readonly page: number;
  readonly size: number;
  /** The cursor of the next one, where there is one. */
  readonly next: string | false | undefined;
}

/** As responses have it. */
export function paginationOf({ total, page, size, next }: OffsetPage): object {
  return {
    total_items: total,
    page_number: page,
    page_size: size,
    total_pages: size === 0 ? 0 : Math.ceil(total / size),
    ...(next && { next }),
  };
}

/** What is asked of a list of things that have names. */
export interface NamedQuery {
  readonly id?: readonly string[];
  /** `*` stands for any characters; the case of letters does not matter. */
  readonly name?: string;
  /** From 1. */
  readonly page?: number;
  readonly size?: number;
  /** Cursor of an earlier response; replaces `page`. */
  readonly start?: string;
}

interface NamedFilter<Id> {
  readonly tenant: TenantId;
  readonly ids: readonly Id[] | undefined;
  readonly name: string | undefined;
}

/** Newest first, ties by id. */
type NamedPosition<Id> = readonly [at: Instant, id: Id];

/** How the list of one noun differs from others. */
export interface NamedList<Id, R> {
  readonly entity: 'proxy' | 'reactor';
  readonly route: string;
  count(filter: NamedFilter<Id>): Query<{ readonly count: number }>;
  page(
    filter: NamedFilter<Id> & {
      readonly limit: number;
      readonly after: NamedPosition<Id> | undefined;
      readonly skip: number;
    },
  ): Query<R>;
  idOf(row: R): Id;
  view(caller: Caller, row: R): object;
}

const sizeDefault = 20;

/**
 * From the decision `integrity` when something of the page was altered.
 * @throws VaultError `validation_failed` for an invalid cursor.
 */
export function listNamed<
  Id extends ProxyId | ReactorId,
  R extends { readonly created_at: Instant },
>(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  caller: Caller,
  { query, list }: { readonly query: NamedQuery; readonly list: NamedList<Id, R> },
): Decide {
  const { tenant } = caller;
  const cursorKey = tenant.keyring.secret('cursor');
  const { page = 1, size = sizeDefault } = query;
  const ids = query.id?.flatMap((id) => parseUuid<Id>(id) ?? []);
  const filter = { tenant: tenant.id, ids, name: query.name };
  const after = positionOfCursor<NamedPosition<Id>>(cursorKey, list.route, query.start);
  return async () => {
    const isEmpty = ids?.length === 0;
    const [counted] = isEmpty ? [] : await store.select(list.count(filter));
    // One row more than the page holds, which says whether another page follows.
    const wanted = { ...filter, limit: size + 1, after, skip: (page - 1) * size };
    const rows = isEmpty ? [] : await store.select(list.page(wanted));
    const shown = rows.slice(0, size);
    const last = shown.at(-1);
    const next =
      last && rows.length > size
        ? sealCursor(cursorKey, list.route, [last.created_at, list.idOf(last)])
        : undefined;
    const fact = { entity: list.entity, id: tenant.id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: {
        status: 200,
        body: {
          pagination: paginationOf({ total: counted?.count ?? 0, page, size, next }),
          data: shown.map((row) => list.view(caller, row)),
        },
      },
    };
  };
}
