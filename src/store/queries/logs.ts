/** Queries about blocks of the log: by time and what they are about, and by their stream. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { sourcedMark } from '../log-chain/block.ts';
import { isSafeRow, safeInteger } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** The place of a block among all of its tenant: newest first, ties by stream and position. */
export type BlockPosition = Pick<Row<'logs'>, 'last_at' | 'stream_id' | 'first_seq'>;

export interface BlockSearch {
  readonly tenant: TenantId;
  /** Blocks that end no earlier. */
  readonly from: Instant;
  /** Blocks that begin no later. */
  readonly to: Instant | undefined;
  /** Blocks that end no later; what begins by `to` ends soon after it. */
  readonly endBy: Instant | undefined;
  /** All of them are among the terms of the block. */
  readonly terms: readonly string[];
  /** These as well, unless an earlier release wrote the block, which has no such terms. */
  readonly laterTerms: readonly string[];
  /** Blocks that end at one of these instants; absent if any will do. */
  readonly ends?: readonly Instant[] | undefined;
  /** Continues after this block. */
  readonly after: BlockPosition | undefined;
  readonly limit: number;
}

/**
 * All integers of a block are safe in JavaScript. The vault did not write any other: rounded, it would be another
 * position, and a reader that continues after that position would never finish. Only {@link alteredBlocks} finds such
 * blocks.
 */
export const hasExactIntegers = isSafeRow('logs');

/** A block that cannot be read; `seq` is where it says that it begins, if that is a number at all. */
export interface AlteredBlock {
  readonly tenant_id: TenantId;
  readonly stream_id: string;
  readonly seq: number;
}

/** As many of a tenant's blocks that no other query here gives. Goes through all of its log. */
export function alteredBlocks(tenant: TenantId, limit: number): Query<AlteredBlock> {
  return (db) =>
    db
      .selectFrom('logs')
      .select(['tenant_id', 'stream_id'])
      .select(sql<number>`coalesce(${safeInteger('first_seq')}, 0)`.as('seq'))
      .where('tenant_id', '=', tenant)
      .where(sql<boolean>`not (${hasExactIntegers})`)
      .orderBy('stream_id')
      .orderBy('first_seq')
      .limit(limit);
}

/** Newest first, by when they end. */
export function blocksMatching(search: BlockSearch): Query<Row<'logs'>> {
  const { tenant, from, to, endBy, terms, laterTerms, ends, after, limit } = search;
  return (db) => {
    let select = db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(hasExactIntegers)
      .where('last_at', '>=', from)
      .orderBy('last_at', 'desc')
      .orderBy('stream_id', 'desc')
      .orderBy('first_seq', 'desc')
      .limit(limit);
    if (endBy !== undefined) select = select.where('last_at', '<=', endBy);
    if (to !== undefined) select = select.where('first_at', '<=', to);
    if (ends !== undefined) select = select.where('last_at', 'in', ends);
    // No percent sign is in a term. An underscore, which stands for any character, finds more, and so does
    // the engine that takes no notice of case: what is found is looked through anyway.
    for (const term of terms) select = select.where('entities', 'like', `%${term}%`);
    for (const term of laterTerms) {
      select = select.where((eb) =>
        eb.or([eb('entities', 'like', `%${term}%`), eb('entities', 'not like', `${sourcedMark}%`)]),
      );
    }
    if (after === undefined) return select;
    const { last_at, stream_id, first_seq } = after;
    // The index knows times, so the time is said apart from the place.
    return select
      .where('last_at', '<=', last_at)
      .where(({ eb, refTuple, tuple }) =>
        eb(
          refTuple('last_at', 'stream_id', 'first_seq'),
          '<',
          tuple(last_at, stream_id, first_seq),
        ),
      );
  };
}

/** When the block ends that comes after so many, newest first, of those that end from one instant until another. */
export function blockEndAfter({
  tenant,
  from,
  until,
  skip,
}: {
  readonly tenant: TenantId;
  readonly from: Instant;
  readonly until: Instant;
  readonly skip: number;
}): Query<Pick<Row<'logs'>, 'last_at'>> {
  return (db) =>
    db
      .selectFrom('logs')
      .select('last_at')
      .where('tenant_id', '=', tenant)
      .where('last_at', '>=', from)
      .where('last_at', '<', until)
      .orderBy('last_at', 'desc')
      .limit(1)
      .offset(skip);
}

/** The oldest blocks of one stream, in its order. */
export function streamBeginning({
  tenant,
  stream_id,
  limit,
}: {
  readonly tenant: TenantId;
  readonly stream_id: string;
  readonly limit: number;
}): Query<Row<'logs'>> {
  return (db) =>
    db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('stream_id', '=', stream_id)
      .where(hasExactIntegers)
      .orderBy('first_seq')
      .limit(limit);
}

export interface WalkPage<R> {
  readonly tenant: TenantId;
  /** The last row of the page before. */
  readonly after: R | undefined;
  readonly limit: number;
}

/** All blocks of a tenant, whatever their places: streams by their ids, each in its order. */
export function blocksAfter({
  tenant,
  after,
  limit,
}: WalkPage<Pick<Row<'logs'>, 'stream_id' | 'first_seq'>>): Query<Row<'logs'>> {
  return (db) => {
    const select = db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(hasExactIntegers)
      .orderBy('stream_id')
      .orderBy('first_seq')
      .limit(limit);
    if (after === undefined) return select;
    const { stream_id, first_seq } = after;
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('stream_id', 'first_seq'), '>', tuple(stream_id, first_seq)),
    );
  };
}
