/** Queries about tenants: the only ones that name no tenant. No request of a tenant runs them. */
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { RotationKind } from '../key-tables.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';
import type { Row } from '../tables.ts';

type TenantKey = Pick<Row<'tenants'>, 'tenant_id'>;

/** At most one row: whether the store has a tenant at all, deleted or not. */
export const anyTenant: Query<TenantKey> = (db) =>
  db.selectFrom('tenants').select('tenant_id').limit(1);

/** All tenants but those that are deleted, oldest first. */
export const allTenants: Query<Unproven<'tenants'>> = (db) =>
  db
    .selectFrom('tenants')
    .selectAll()
    .where('deleted_at', 'is', null)
    .orderBy('created_at')
    .orderBy('tenant_id');

/** At most one row: whether there is a tenant that holds real values. */
export const anyProductionTenant: Query<TenantKey> = (db) =>
  db
    .selectFrom('tenants')
    .select('tenant_id')
    .where('type', '=', 'production')
    .where('deleted_at', 'is', null)
    .limit(1);

/** Some tenants, deleted or not, in the order of ids. */
export function tenantsAfter(
  after: TenantId | undefined,
  limit: number,
): Query<Unproven<'tenants'>> {
  return (db) => {
    const select = db.selectFrom('tenants').selectAll().orderBy('tenant_id').limit(limit);
    return after === undefined ? select : select.where('tenant_id', '>', after);
  };
}

export function tenantWithId(tenant: TenantId): Query<Unproven<'tenants'>> {
  return (db) => db.selectFrom('tenants').selectAll().where('tenant_id', '=', tenant);
}

/** The tenant that an operator names, also a deleted one. */
export function tenantNamed(name: string): Query<Pick<Row<'tenants'>, 'tenant_id' | 'name'>> {
  return (db) => db.selectFrom('tenants').select(['tenant_id', 'name']).where('name', '=', name);
}

type LogTable = 'logs' | 'checkpoints' | 'log_removals' | 'tenants';

/** The first tenants, in the order of ids, that have rows in a table of the log; deleted ones included. */
export function nextTenantWithLogs(
  table: LogTable,
  after: TenantId | undefined,
  limit = 1,
): Query<TenantKey> {
  return (db) => {
    const select = db.selectFrom(table).select('tenant_id').orderBy('tenant_id').limit(limit);
    return after === undefined ? select : select.where('tenant_id', '>', after);
  };
}

export interface AgedKeys {
  /** Rotations that are as new as this keep a tenant out, and so does its own creation. */
  readonly since: Instant;
  readonly kinds: readonly RotationKind[];
  readonly limit: number;
}

/**
 * Tenants that were created before an instant and have had no rotation of these kinds since, the oldest first. Rows of
 * rotations say so, which carry no proof. The inner query stands by itself, because Citus cannot look into a spread
 * table for each row of one that is copied.
 */
export function tenantsWithAgedKeys({ since, kinds, limit }: AgedKeys): Query<Unproven<'tenants'>> {
  return (db) =>
    db
      .selectFrom('tenants')
      .selectAll()
      .where('deleted_at', 'is', null)
      .where('away_until', 'is', null)
      .where('created_at', '<=', since)
      .where('tenant_id', 'not in', ({ selectFrom }) =>
        selectFrom('key_rotations')
          .select('tenant_id')
          .where('purpose', 'in', kinds)
          .where('started_at', '>', since),
      )
      .orderBy('created_at')
      .orderBy('tenant_id')
      .limit(limit);
}
