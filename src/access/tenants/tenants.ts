/** Tenants: their settings, quotas and keys, and how one comes to be. */

import { type Clock, hour, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { createKeyring, type Keyring, openKeyring, wrapKeyring } from '../../keys/keyring.ts';
import type { LocalRootKey } from '../../keys/root-key.ts';
import { isTombstone, sealTombstone } from '../../keys/tombstone.ts';
import { grantOf } from '../../rules/openings.ts';
import { ifProven, proven, provenText } from '../../rules/proven-row.ts';
import { quotasOf, settingsOf } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { allTenants } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';

/** A change made by another process is noticed within a second: half of it is for the reading itself. */
const staleMsMax = second / 2;

/** Tenants whose keyrings and settings a thread caches, about 12 KB each; see docs/growth.md. */
const tenantsCachedMax = 10_000;

/** Opening a keyring costs more than reading its row, so the opened keyring is cached while the row is unchanged. */
const keyringAgeMsMax = hour;

export interface TenantsOptions {
  readonly store: Store;
  readonly rootKey: LocalRootKey;
  readonly clock: Clock;
  readonly random: Random;
  /** Opened keyrings, with their settings; {@link tenantsCachedMax} unless given. */
  readonly cachedMax?: number;
}

export function createTenants({
  store,
  rootKey,
  clock,
  random,
  cachedMax = tenantsCachedMax,
}: TenantsOptions): Tenants {
  // What this process commits takes effect at once here; other servers see it within a second.
  const epoch = () => store.epochs.now('tenants');
  const recent = new ExpiringMap<TenantId, Tenant>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: cachedMax,
    epoch,
  });
  const keyrings = new ExpiringMap<TenantId, { wrapped: Uint8Array; keyring: Keyring }>({
    clock,
    ageMsMax: keyringAgeMsMax,
    entriesMax: cachedMax,
    epoch,
  });

  /** Opened keyrings are cached while the wrapped bytes stay the same, and with them their contexts. */
  function keyringOf({ tenant_id, keyring: wrapped }: Row<'tenants'>): Keyring {
    const known = keyrings.get(tenant_id);
    if (known && Buffer.compare(known.wrapped, wrapped) === 0) return known.keyring;
    const keyring = openKeyring(rootKey.key, grantOf('load keyrings'), {
      tenant: tenant_id,
      wrapped,
    });
    keyrings.set(tenant_id, { wrapped, keyring });
    return keyring;
  }

  /** `undefined` for a row that was altered outside the vault, its keyring included. */
  function own(row: Unproven<'tenants'>): Row<'tenants'> | undefined {
    try {
      // The row holds the keys that verify it. The root key verifies those, and that they are of this tenant.
      return ifProven({ keyring: keyringOf(unverifiedColumns(row)) }, 'tenants', row);
    } catch (error) {
      if (isIntegrityError(error)) return undefined;
      throw error;
    }
  }

  const tenantOf = (row: Row<'tenants'>): Tenant => ({
    id: row.tenant_id,
    name: row.name,
    type: row.type,
    settings: settingsOf(row.settings),
    quotas: quotasOf(row.quotas),
    keyring: keyringOf(row),
  });

  /** The keys that would verify a deleted tenant are destroyed. The root key verifies its row instead. */
  function isDeleted(row: Unproven<'tenants'>): boolean {
    const columns = unverifiedColumns(row);
    if (columns.deleted_at === null) return false;
    return isTombstone(rootKey.key, tombstoneOf(columns), columns.proof);
  }

  async function rowOf(id: TenantId): Promise<Unproven<'tenants'> | undefined> {
    const row = await store.get('tenants', { tenant_id: id });
    // A row that an attacker marked as deleted still exists, but is altered.
    if (row && !isDeleted(row)) return row;
    keyrings.delete(id);
    return undefined;
  }

  return {
    known: (id) => recent.get(id),
    find: async (id) => {
      const known = recent.get(id);
      if (known) return known;
      const reading = recent.reading();
      const stored = await rowOf(id);
      const row = stored && own(stored);
      if (row === undefined) return undefined;
      const tenant = tenantOf(row);
      recent.set(id, tenant, reading);
      return tenant;
    },
    draft: ({ name, type }) => {
      const id = newUuid<TenantId>(random);
      const keyring = createKeyring(random);
      const row = proven({ keyring }, 'tenants', {
        tenant_id: id,
        version: 1,
        name,
        display_name: null,
        type,
        settings: '{}',
        quotas: '{}',
        keyring: wrapKeyring(rootKey.key, id, keyring, random),
        created_at: clock.now(),
        modified_by: null,
        modified_at: null,
        deleted_at: null,
      });
      return { row, tenant: tenantOf(row) };
    },
    keyringOf,
    tombstone: (row) => ({ ...row, proof: sealTombstone(rootKey.key, tombstoneOf(row), random) }),
    isTombstone: isDeleted,
    all: async () => (await store.select(allTenants)).map(unverifiedColumns),
    row: rowOf,
  };
}

/** The mark of a deleted tenant's row is bound to these values. */
export function tombstoneOf(row: Omit<Row<'tenants'>, 'proof'>) {
  return { tenant: row.tenant_id, row: provenText('tenants', row) };
}

/** The name of the tenant in the API. The tenant chooses it, so it is not proof of identity. */
export function nameOf({ name, display_name }: Row<'tenants'>): string {
  return display_name ?? name;
}
