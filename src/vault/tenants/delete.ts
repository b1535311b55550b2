/** Deleting a tenant: first its keys, so that nothing of it can be read again, then all of its rows. */
import type { Clock, Instant } from '../../lib/clock.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf, systemEntry } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Change } from '../../store/change.ts';
import { purgedTables, rowsOfTenant } from '../../store/queries/tenant-rows.ts';
import { deletedTenants } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { draftCheckpoint, newestCheckpoint } from '../logs/checkpoints.ts';
import { deletedPrefix } from './handle.ts';
import { type TenantReading, tenantRowOf } from './read.ts';

/**
 * One commit destroys the wrapped keyring and ends authentication for the tenant; every server has
 * followed a second later. {@link purgeDeletedTenants} removes the rows, which nobody can open any
 * more. What was written to a backup before is as safe as the backup and the root key are.
 */
export function deleteTenant(
  { store, tenants, clock }: TenantReading & Purging,
  actor: Actor,
): Decide {
  return async () => {
    const now = clock.now();
    // The key that signs is destroyed as well, so this is the last checkpoint of the log.
    const newest = await newestCheckpoint(store, actor.tenant.id);
    const checkpoint = await draftCheckpoint(store, actor.tenant, newest, now);
    const row = await tenantRowOf(tenants, actor.tenant.id);
    const fact = { entity: 'tenant', id: row.tenant_id, operation: 'delete' } as const;
    return {
      change: {
        replace: { tenants: [deleted(row, now)] },
        ...(checkpoint && { insert: { checkpoints: [checkpoint] } }),
        entries: [entryOf(actor, now, fact)],
      },
      reply: { status: 204 },
    };
  };
}

/** What remains says that there was a tenant, for those who read its log; its name is free again. */
function deleted(row: Row<'tenants'>, now: Instant): Row<'tenants'> {
  return {
    ...row,
    version: row.version + 1,
    name: `${deletedPrefix}${row.tenant_id}`,
    display_name: null,
    settings: '{}',
    quotas: '{}',
    keyring: new Uint8Array(0),
    deleted_at: now,
    // The key that would prove it is destroyed with the others.
    proof: '',
  };
}

export interface Purging {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * Removes up to `rowsMax` rows of one table of one deleted tenant, in one change.
 * @returns how many; 0 when no deleted tenant has any left, or when another server was faster.
 */
export async function purgeDeletedTenants(
  { store, clock }: Purging,
  rowsMax: number,
): Promise<number> {
  const tenants = await store.select(deletedTenants);
  for (const { tenant_id: tenant } of tenants) {
    for (const table of purgedTables) {
      const rows = await store.select(rowsOfTenant(table, { tenant, limit: rowsMax }));
      if (rows.length === 0) continue;
      const remove = { [table]: rows } as NonNullable<Change['remove']>;
      const at = clock.now();
      const entry = systemEntry({ tenant, at, entity: 'tenant', id: tenant, operation: 'purge' });
      const { conflict } = await store.commit({ remove, entries: [entry], unexplained: true });
      return conflict === undefined ? rows.length : 0;
    }
  }
  return 0;
}
