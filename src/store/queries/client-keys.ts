/** Queries about the keys with which clients encrypt. */
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Query } from '../store.ts';
import type { Unproven } from '../stored-row.ts';

/** Those that have not expired, newest first. */
export function liveClientKeys(tenant: TenantId, now: Instant): Query<Unproven<'client_keys'>> {
  return (db) =>
    db
      .selectFrom('client_keys')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('expires_at', '>', now)
      .orderBy('created_at', 'desc')
      .orderBy('client_key_id', 'desc');
}
