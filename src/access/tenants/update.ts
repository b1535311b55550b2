/** Updating a tenant: its own name and settings through the API, its quotas by the operator. */
import type { Caller, Operator } from '../../rules/caller.ts';
import { tagOf } from '../../rules/entity-tag.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { proven } from '../../rules/proven-row.ts';
import { parseSettings, type Quotas } from '../../rules/settings.ts';
import { type TenantReading, tenantRowOf, viewTenant } from './read.ts';

export interface TenantUpdate {
  readonly name: string;
  /** Merged into those that are set. */
  readonly settings?: Readonly<Record<string, string>> | null;
}

/** @throws VaultError `validation_failed` naming every setting that is unknown or has another value. */
export function updateTenant(
  { tenants, clock }: TenantReading,
  caller: Caller,
  update: TenantUpdate,
): Decide {
  const settings = parseSettings(update.settings ?? {});
  return async () => {
    const now = clock.now();
    const row = await tenantRowOf(tenants, caller.tenant);
    const updated = proven(caller.tenant, 'tenants', {
      ...row,
      version: row.version + 1,
      display_name: update.name === row.name ? null : update.name,
      settings: JSON.stringify({ ...JSON.parse(row.settings), ...settings }),
      modified_by: caller.application,
      modified_at: now,
    });
    const fact = { entity: 'tenant', id: row.tenant_id, operation: 'update' } as const;
    return {
      change: { replace: { tenants: [updated] }, entries: [entryOf(caller, now, fact)] },
      reply: {
        status: 200,
        etag: tagOf('tenants', updated),
        body: viewTenant(updated),
      },
      before: () => tagOf('tenants', row),
    };
  };
}

/** Sets quotas, merged into those that are set; every server follows within a second. */
export function setQuotas(
  { tenants, clock }: TenantReading,
  operator: Operator,
  quotas: Partial<Quotas>,
): Decide {
  return async () => {
    const now = clock.now();
    const row = await tenantRowOf(tenants, operator.tenant);
    const merged: Partial<Quotas> = { ...JSON.parse(row.quotas), ...quotas };
    const updated = proven(operator.tenant, 'tenants', {
      ...row,
      version: row.version + 1,
      quotas: JSON.stringify(merged),
    });
    const fact = { entity: 'tenant', id: row.tenant_id, operation: 'update' } as const;
    return {
      change: {
        replace: { tenants: [updated] },
        // A shorter retention may make old logs due at once.
        ...(quotas.log_retention !== undefined && {
          insert: { due_work: [{ tenant_id: row.tenant_id, work: 'old logs', due_at: now }] },
        }),
        entries: [entryOf(operator, now, fact)],
      },
      reply: { status: 200, body: viewTenant(updated) },
    };
  };
}
