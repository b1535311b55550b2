/** Queries about the search index of the log: its rows, and the blocks that it does not cover yet. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { isSafeRow } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import { type BlockPosition, hasExactIntegers } from './logs.ts';
import { storedTenant } from './stored.ts';

/** The driver fails on other numbers, for all rows of the query. */
const hasExactPlace = isSafeRow('log_index');

export interface IndexSearch {
  readonly tenant: TenantId;
  readonly slots: readonly number[];
  /** Chapters that end later. */
  readonly after: Instant;
  /** Chapters that end no later. */
  readonly until: Instant;
  /** Chapters that begin earlier. */
  readonly before: Instant;
  readonly limit: number;
}

/** Newest first; the rows of a chapter follow one another. */
export function indexRows(search: IndexSearch): Query<Row<'log_index'>> {
  const { tenant, slots, after, until, before, limit } = search;
  return (db) =>
    db
      .selectFrom('log_index')
      .selectAll()
      .where('tenant_id', '=', storedTenant(tenant))
      .where(hasExactPlace)
      .where('slot', 'in', slots)
      .where('until', '>', after)
      .where('until', '<=', until)
      .where('since', '<', before)
      .orderBy('until', 'desc')
      .orderBy('slot', 'desc')
      .limit(limit);
}

/** The slots of a chapter that are stored. */
export function indexedSlots(
  tenant: TenantId,
  until: Instant,
): Query<Pick<Row<'log_index'>, 'slot'>> {
  return (db) =>
    db
      .selectFrom('log_index')
      .select('slot')
      .where('tenant_id', '=', storedTenant(tenant))
      .where(hasExactPlace)
      .where('until', '=', until)
      .orderBy('slot');
}

/** So many rows of chapters that ended before: their blocks are gone. */
export function outdatedIndexRows(
  tenant: TenantId,
  before: Instant,
  limit: number,
): Query<Pick<Row<'log_index'>, 'tenant_id' | 'slot' | 'until'>> {
  return (db) =>
    db
      .selectFrom('log_index')
      .select(['tenant_id', 'slot', 'until'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where(hasExactPlace)
      .where('until', '<', before)
      .limit(limit);
}

export interface UnindexedSpan {
  readonly tenant: TenantId;
  /** Blocks that end later; all if absent. */
  readonly since: Instant | undefined;
  /** Blocks that end no later. */
  readonly until: Instant;
}

/** How many entries there are in the blocks that end in a span. */
export function entriesEnding({
  tenant,
  since,
  until,
}: UnindexedSpan): Query<{ readonly count: number }> {
  return (db) => {
    const select = db
      .selectFrom('logs')
      .select(sql<number>`coalesce(sum(last_seq - first_seq + 1), 0)`.as('count'))
      .where('tenant_id', '=', tenant)
      .where(hasExactIntegers)
      .where('last_at', '<=', until);
    return since === undefined ? select : select.where('last_at', '>', since);
  };
}

type EndingBlock = BlockPosition & Pick<Row<'logs'>, 'last_seq' | 'entities'>;

/** Oldest first, by when they end. */
export function blocksEnding(
  span: UnindexedSpan & { readonly after: BlockPosition | undefined; readonly limit: number },
): Query<EndingBlock> {
  const { tenant, since, until, after, limit } = span;
  return (db) => {
    let select = db
      .selectFrom('logs')
      .select(['last_at', 'stream_id', 'first_seq', 'last_seq', 'entities'])
      .where('tenant_id', '=', tenant)
      .where(hasExactIntegers)
      .where('last_at', '<=', until)
      .orderBy('last_at')
      .orderBy('stream_id')
      .orderBy('first_seq')
      .limit(limit);
    if (since !== undefined) select = select.where('last_at', '>', since);
    if (after === undefined) return select;
    const { last_at, stream_id, first_seq } = after;
    return select
      .where('last_at', '>=', last_at)
      .where(({ eb, refTuple, tuple }) =>
        eb(
          refTuple('last_at', 'stream_id', 'first_seq'),
          '>',
          tuple(last_at, stream_id, first_seq),
        ),
      );
  };
}
