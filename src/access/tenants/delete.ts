/** Deleting a tenant: first its keys, so that nothing of it can be read again, then all of its rows. */

import { draftCheckpoint, newestCheckpoint } from '../../audit/checkpoints.ts';
import { type Clock, day, type Instant } from '../../base/clock.ts';
import { integrityError, type VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Actor } from '../../rules/caller.ts';
import { tagOf } from '../../rules/entity-tag.ts';
import { entryOf, systemEntry } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { workOfTenant } from '../../store/queries/due.ts';
import { dueWork } from '../../store/queries/due-tenants.ts';
import { purgedTables, rowsOfTenant } from '../../store/queries/tenant-rows.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { ownPairRows } from '../keyrings/signing-pairs.ts';
import { deletedPrefix } from './handle.ts';
import { type TenantReading, tenantRowOf } from './read.ts';

/**
 * One commit destroys the wrapped keyring and ends authentication for the tenant; every server has
 * followed a second later. {@link purgeDeletedTenants} removes the rows, which cannot be opened any
 * more. Rows in an earlier backup are as safe as the backup and the root key.
 */
export function deleteTenant(
  { store, tenants, clock }: TenantReading & Purging,
  actor: Actor,
): Decide {
  return async () => {
    const now = clock.now();
    // The key that signs is destroyed as well, so this is the last checkpoint of the log.
    const newest = await newestCheckpoint(store, actor.tenant.id);
    const checkpoint = await draftCheckpoint(store, { tenant: actor.tenant, newest, now });
    const row = await tenantRowOf(tenants, actor.tenant);
    const fact = { entity: 'tenant', id: row.tenant_id, operation: 'delete' } as const;
    const tombstone = await tenants.tombstone(deleted(row, now));
    const { guard } = tombstone;
    return {
      change: {
        remove: { vault_keys: [...guard.remove, ...ownPairRows(actor.tenant.keyring)] },
        replace: { tenants: [tombstone.row] },
        insert: {
          vault_keys: guard.insert,
          ...(checkpoint && { checkpoints: [checkpoint] }),
          due_work: [{ tenant_id: row.tenant_id, work: 'tenant', due_at: now }],
        },
        entries: [entryOf(actor, now, fact)],
      },
      reply: { status: 204 },
      before: () => tagOf('tenants', row),
    };
  };
}

/** The remaining row records that the tenant existed, for readers of its log; its name is free again. */
function deleted(
  { proof: _proof, ...row }: Row<'tenants'>,
  now: Instant,
): Omit<Row<'tenants'>, 'proof'> {
  return {
    ...row,
    version: row.version + 1,
    name: `${deletedPrefix}${row.tenant_id}`,
    display_name: null,
    settings: '{}',
    quotas: '{}',
    keyring: new Uint8Array(0),
    deleted_at: now,
  };
}

/** For as long after the deletion a server that had the tenant's keys may still write rows of it. */
const lateMs = day;

export interface Purging {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/**
 * Removes up to `rowsMax` rows of one table of one deleted tenant, in one change.
 * @returns how many; 0 when no deleted tenant has any left, or when another server was faster.
 * @throws VaultError `integrity` when all that is left are tenants that the vault did not delete.
 */
export async function purgeDeletedTenants(
  { store, tenants, clock }: Purging,
  rowsMax: number,
): Promise<number> {
  const now = clock.now();
  const failures = createFailures(store);
  const purge = async ({ tenant_id: tenant, due_at }: Row<'due_work'>) => {
    const row = await store.get('tenants', { tenant_id: tenant });
    if (row === undefined) return undefined;
    if (!(await tenants.isTombstone(row))) throw notDeleted(tenant);
    const removed = await purgeSome({ store, clock }, tenant, rowsMax);
    if (removed === undefined && due_at <= now - lateMs) {
      await store.record({ remove: { due_work: await store.select(workOfTenant(tenant)) } });
    }
    return removed;
  };
  for await (const page of dueWork(store, { work: 'tenant', until: now })) {
    for (const work of page) {
      const removed = await failures.attempt(() => purge(work));
      if (removed !== undefined) return removed;
    }
  }
  failures.report();
  return 0;
}

/** `undefined` when nothing is left; 0 when another server was faster. */
async function purgeSome(
  { store, clock }: Pick<Purging, 'store' | 'clock'>,
  tenant: TenantId,
  limit: number,
): Promise<number | undefined> {
  for (const table of purgedTables) {
    const rows = await store.select(rowsOfTenant(table, { tenant, limit }));
    if (rows.length === 0) continue;
    const remove = { [table]: rows } as NonNullable<Change['remove']>;
    const at = clock.now();
    const entry = systemEntry({ tenant, at, entity: 'tenant', id: tenant, operation: 'purge' });
    const { conflict } = await store.commit({ remove, entries: [entry], unexplained: true });
    return conflict === undefined ? rows.length : 0;
  }
  return undefined;
}

function notDeleted(tenant: TenantId): VaultError {
  return integrityError(
    `the tenant ${tenant} was marked as deleted outside the vault; its rows stay`,
    { altered: { entity: 'tenant', id: tenant } },
  );
}
