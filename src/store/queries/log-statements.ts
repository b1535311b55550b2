/** Queries about what proves a log: its checkpoints, and the statements of what was removed from it. */
import type { TenantId } from '../../base/ids.ts';
import { prepared } from '../prepared.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';
import type { WalkPage } from './logs.ts';

export function newestCheckpoint(tenant: TenantId): Query<Row<'checkpoints'>> {
  return newestOf({ tenant });
}

const newestOf = prepared<{ readonly tenant: TenantId }, Row<'checkpoints'>>(
  (placeOf) => (db) =>
    db
      .selectFrom('checkpoints')
      .selectAll()
      .where('tenant_id', '=', placeOf('tenant'))
      .orderBy('seq', 'desc')
      .limit(1),
  'newest checkpoint',
);

export function checkpointsAfter({
  tenant,
  after,
  limit,
}: WalkPage<Row<'checkpoints'>>): Query<Row<'checkpoints'>> {
  return (db) =>
    db
      .selectFrom('checkpoints')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('seq', '>', after?.seq ?? 0)
      .orderBy('seq')
      .limit(limit);
}

/** By stream: each has at most one. */
export function removalsAfter({
  tenant,
  after,
  limit,
}: WalkPage<Row<'log_removals'>>): Query<Row<'log_removals'>> {
  return (db) =>
    db
      .selectFrom('log_removals')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('stream_id', '>', after?.stream_id ?? '')
      .orderBy('stream_id')
      .limit(limit);
}
