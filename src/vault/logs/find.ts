/** Finding entries of the log by what they are about, newest first. */
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { Query, Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

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

export function logPositionOf(row: Row<'logs'>): LogPosition {
  return [row.created_at, row.stream_id, row.seq];
}

/**
 * The log is kept in the order of time, so entries about one entity are found by going backwards
 * through all. The index holds what is compared, so the rows of others are not touched.
 */
export function findLogs(store: Store, search: LogSearch): Promise<Row<'logs'>[]> {
  const { entity_type, entity_id, skip } = search;
  const isNear = entity_type === undefined && entity_id === undefined && skip === 0;
  return isNear ? store.select(selectLogs(search)) : store.scan(selectLogs(search));
}

function selectLogs(search: LogSearch): Query<Row<'logs'>> {
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
