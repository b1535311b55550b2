/** Queries about log entries: by what they are about, by their stream, and by the request they came from. */
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** The place of an entry in the list: newest first, ties by stream and position. */
export type LogPosition = readonly [at: Instant, stream: string, seq: number];

export interface LogFilter {
  readonly tenant: TenantId;
  readonly entity_type: string | undefined;
  readonly entity_id: string | undefined;
  /** Inclusive. */
  readonly oldest: Instant;
  /** Exclusive. */
  readonly until: Instant | undefined;
}

export interface LogSearch extends LogFilter {
  /** Continues after this entry. */
  readonly after: LogPosition | undefined;
  readonly skip: number;
  readonly limit: number;
}

export function logsMatching(search: LogSearch): Query<Row<'logs'>> {
  const { tenant, entity_type, entity_id, oldest, until, after, skip, limit } = search;
  return (db) => {
    let select = db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('created_at', '>=', oldest)
      .orderBy('created_at', 'desc')
      .orderBy('stream_id', 'desc')
      .orderBy('seq', 'desc')
      .limit(limit);
    if (until !== undefined) select = select.where('created_at', '<', until);
    if (entity_type !== undefined) select = select.where('entity_type', '=', entity_type);
    if (entity_id !== undefined) select = select.where('entity_id', '=', entity_id);
    if (after === undefined) return skip === 0 ? select : select.offset(skip);
    // The index knows times, so the time is said apart from the place.
    return select
      .where('created_at', '<=', after[0])
      .where(({ eb, refTuple, tuple }) =>
        eb(refTuple('created_at', 'stream_id', 'seq'), '<', tuple(...after)),
      );
  };
}

/** The oldest entries of one stream, in its order. */
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
      .orderBy('seq')
      .limit(limit);
}

export interface WalkPage<R> {
  readonly tenant: TenantId;
  /** The last row of the page before. */
  readonly after: R | undefined;
  readonly limit: number;
}

/** All entries of a tenant: streams by their ids, each in its order. */
export function entriesAfter({ tenant, after, limit }: WalkPage<Row<'logs'>>): Query<Row<'logs'>> {
  const position = [after?.stream_id ?? '', after?.seq ?? Number.MIN_SAFE_INTEGER] as const;
  return (db) =>
    db
      .selectFrom('logs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('stream_id', 'seq'), '>', tuple(...position)))
      .orderBy('stream_id')
      .orderBy('seq')
      .limit(limit);
}

export interface TokenCreations {
  readonly tenant: TenantId;
  readonly at: Instant;
  readonly tokens: readonly string[];
  readonly traceId: string;
}

/** Of those tokens, the ones whose creation at that time has an entry with the trace id. */
export function tokensCreatedInTrace({
  tenant,
  at,
  tokens,
  traceId,
}: TokenCreations): Query<Pick<Row<'logs'>, 'entity_id'>> {
  return (db) =>
    db
      .selectFrom('logs')
      .select('entity_id')
      .where('tenant_id', '=', tenant)
      .where('created_at', '=', at)
      .where('entity_type', '=', 'token')
      .where('entity_id', 'in', tokens)
      .where('operation', '=', 'create')
      .where('trace_id', '=', traceId);
}
