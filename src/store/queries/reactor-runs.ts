/** Queries about calls of reactors. */
import type { Instant } from '../../lib/clock.ts';
import type { ReactorId, ReactorRunId, TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** Newest first, ties by id. */
export type RunPosition = readonly [at: Instant, id: ReactorRunId];

export interface RunPage {
  readonly tenant: TenantId;
  readonly reactor: ReactorId;
  /** What has expired by then is left out. */
  readonly now: Instant;
  readonly limit: number;
  readonly after: RunPosition | undefined;
}

export function runPage({
  tenant,
  reactor,
  now,
  limit,
  after,
}: RunPage): Query<Row<'reactor_runs'>> {
  return (db) => {
    const select = db
      .selectFrom('reactor_runs')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('reactor_id', '=', reactor)
      .where('due_at', 'is', null)
      .where('expires_at', '>', now)
      .orderBy('created_at', 'desc')
      .orderBy('run_id', 'desc')
      .limit(limit);
    if (after === undefined) return select;
    return select.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('created_at', 'run_id'), '<', tuple(...after)),
    );
  };
}

/** Of a tenant, those that have not ended. */
export function waitingRunCount(tenant: TenantId): Query<{ readonly count: number }> {
  return (db) =>
    db
      .selectFrom('reactor_runs')
      .where('tenant_id', '=', tenant)
      .where('due_at', 'is not', null)
      .select((eb) => eb.fn.countAll<number>().as('count'));
}
