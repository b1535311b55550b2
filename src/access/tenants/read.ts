/** Reading the caller's own tenant: its name, settings and quotas. */
import type { Clock } from '../../base/clock.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { VaultError } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import { tagOf } from '../../rules/entity-tag.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { requireProven } from '../../rules/proven-row.ts';
import { quotasOf, settingsOf } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import { nameOf } from './tenants.ts';

export interface TenantReading {
  readonly tenants: Tenants;
  readonly clock: Clock;
}

export function readTenant({ tenants, clock }: TenantReading, caller: Caller): Decide {
  return async () => {
    const row = await tenantRowOf(tenants, caller.tenant);
    const fact = { entity: 'tenant', id: row.tenant_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, clock.now(), fact)] },
      reply: { status: 200, etag: tagOf('tenants', row), body: viewTenant(row) },
      before: () => tagOf('tenants', row),
    };
  };
}

/**
 * The row as the vault wrote it.
 * @throws VaultError `not_found` when the tenant is deleted, or was while the request was under way; `integrity` when
 * the row was altered.
 */
export async function tenantRowOf(tenants: Tenants, tenant: Tenant): Promise<Row<'tenants'>> {
  const row = await tenants.row(tenant.id);
  if (row) return requireProven(tenant, 'tenants', row);
  throw new VaultError('not_found', { public: 'There is no such tenant.' });
}

export function viewTenant(row: Row<'tenants'>): object {
  return {
    id: row.tenant_id,
    name: nameOf(row),
    type: row.type,
    settings: settingsOf(row.settings),
    quotas: quotasOf(row.quotas),
    created_at: formatTimestamp(row.created_at),
    ...(row.modified_at !== null && {
      ...(row.modified_by !== null && { modified_by: row.modified_by }),
      modified_at: formatTimestamp(row.modified_at),
    }),
  };
}
