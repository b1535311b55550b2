/** Queries about webhooks. */
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Row } from '../tables.ts';

/** Those that events are sent to. There are few of a tenant. */
export function enabledWebhooks(tenant: TenantId): Query<Row<'webhooks'>> {
  return (db) =>
    db
      .selectFrom('webhooks')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where('status', '=', 'enabled');
}
