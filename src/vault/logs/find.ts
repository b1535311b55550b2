/** Finding entries of the log by what they are about, newest first. */
import { type LogPosition, type LogSearch, logsMatching } from '../../store/queries/logs.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

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
  return isNear ? store.select(logsMatching(search)) : store.scan(logsMatching(search));
}
