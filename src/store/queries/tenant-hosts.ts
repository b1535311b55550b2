/** Queries about the names that the operator gave to a tenant. */
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';

/** In the order of names. */
export function hostsOfTenant(tenant: TenantId): Query<Unproven<'tenant_hosts'>> {
  return (db) =>
    db.selectFrom('tenant_hosts').selectAll().where('tenant_id', '=', tenant).orderBy('host');
}
