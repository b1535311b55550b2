/** Tenants: their settings, quotas and keys, and how one comes to be. */

import { type Clock, hour, second } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { newUuid, type TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { createKeyring, type Keyring } from '../../keys/keyring.ts';
import { readStored } from '../../keys/root/wrapped.ts';
import { proven, requireProven } from '../../rules/proven-row.ts';
import { type Quarantine, silentQuarantine } from '../../rules/quarantine.ts';
import { quotasOf, settingsOf } from '../../rules/settings.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import { moved, movedTexts } from '../../store/outgoing-copy.ts';
import { allTenants } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { tombstoneOf } from '../keyrings/tombstone-row.ts';
import { guardedBy, type VaultKeys } from '../keyrings/vault-keys.ts';

/** A change made by another process is noticed within a second: half of it is for the reading itself. */
const staleMsMax = second / 2;

/** Tenants whose keyrings and settings a thread caches, about 12 KB each; see docs/growth.md. */
const tenantsCachedMax = 10_000;

/** Opening a keyring costs more than reading its row, so the opened keyring is cached while the row is unchanged. */
const keyringAgeMsMax = hour;

export interface TenantsOptions {
  readonly store: Store;
  readonly vaultKeys: VaultKeys;
  readonly clock: Clock;
  readonly random: Random;
  /** For rows of the tenants; {@link silentQuarantine} unless given. */
  readonly quarantine?: Quarantine;
  /** Opened keyrings, with their settings; {@link tenantsCachedMax} unless given. */
  readonly cachedMax?: number;
}

export function createTenants({
  store,
  vaultKeys,
  clock,
  random,
  quarantine = silentQuarantine,
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

  // Requests may still use a keyring that a commit of this process has replaced.
  const latest = new ExpiringMap<TenantId, Keyring>({
    clock,
    ageMsMax: keyringAgeMsMax,
    entriesMax: cachedMax,
  });

  /**
   * Opened keyrings are cached while the wrapped bytes stay the same, and with them their contexts. A rotation of the
   * root key seals the same keys again, and a server that does not have the new root key yet goes on with those it
   * knows. They verify the row, which names the keyring.
   */
  async function keyringOf({ tenant_id, keyring: wrapped }: Row<'tenants'>): Promise<Keyring> {
    const known = keyrings.get(tenant_id);
    if (known && Buffer.compare(known.wrapped, wrapped) === 0) return known.keyring;
    const last = latest.get(tenant_id);
    // It keeps its age, so that no keyring stays open for longer than its time.
    if (last !== undefined && readStored(wrapped)?.header?.keyring === last.id) return last;
    const keyring = await vaultKeys.openKeyring({ tenant: tenant_id, wrapped });
    remember(tenant_id, { wrapped, keyring });
    return keyring;
  }

  function remember(id: TenantId, opened: { wrapped: Uint8Array; keyring: Keyring }): void {
    const { keyring } = opened;
    keyrings.set(id, opened);
    latest.get(id)?.succeededBy(keyring);
    latest.set(id, keyring);
  }

  /** `undefined` for a row that was altered outside the vault, its keyring included. */
  async function own(row: Unproven<'tenants'>): Promise<Tenant | undefined> {
    try {
      // The row holds the keys that verify it. The root key verifies those, and that they are of this tenant.
      const keyring = await keyringOf(unverifiedColumns(row));
      return tenantOf(requireProven({ keyring }, 'tenants', row), keyring);
    } catch (error) {
      if (isIntegrityError(error)) return undefined;
      throw error;
    }
  }

  const tenantOf = (row: Row<'tenants'>, keyring: Keyring): Tenant => ({
    id: row.tenant_id,
    name: row.name,
    type: row.type,
    settings: settingsOf(row.settings),
    quotas: quotasOf(row.quotas),
    keyring,
    quarantine,
  });

  /** The keys that would verify a deleted tenant are destroyed. The vault's own key verifies its row instead. */
  async function isDeleted(row: Unproven<'tenants'>): Promise<boolean> {
    const columns = unverifiedColumns(row);
    if (columns.deleted_at === null) return false;
    return vaultKeys.isMarkedDeleted({ ...tombstoneOf(columns), mark: columns.proof });
  }

  function isAway(row: Unproven<'tenants'>): boolean {
    const until = unverifiedColumns(row).away_until;
    return until !== null && clock.now() < until;
  }

  async function rowOf(id: TenantId): Promise<Unproven<'tenants'> | undefined> {
    const row = await store.get('tenants', { tenant_id: id });
    // A row that an attacker marked as deleted still exists, but is altered.
    if (row && !isAway(row) && !(await isDeleted(row))) return row;
    keyrings.delete(id);
    return undefined;
  }

  async function readTenant(id: TenantId): Promise<Tenant | undefined> {
    const reading = recent.reading();
    const stored = await rowOf(id);
    const tenant = stored && (await own(stored));
    if (tenant === undefined) return undefined;
    recent.set(id, tenant, reading);
    return tenant;
  }

  /** All who ask meanwhile share a reading: after a commit of many entries, each of them asks for its tenant. */
  const reads = new Map<
    TenantId,
    { readonly since: number; readonly tenant: ReturnType<typeof readTenant> }
  >();

  function find(id: TenantId): Promise<Tenant | undefined> {
    const known = recent.get(id);
    if (known) return Promise.resolve(known);
    const since = epoch();
    const shared = reads.get(id);
    if (shared?.since === since) return shared.tenant;
    const tenant = readTenant(id).finally(() => {
      if (reads.get(id)?.tenant === tenant) reads.delete(id);
    });
    reads.set(id, { since, tenant });
    return tenant;
  }

  return {
    known: (id) => recent.get(id),
    opened: () => latest.entries(),
    find,
    findForRequest: async (id) => {
      const tenant = await find(id);
      if (tenant) return tenant;
      const row = await store.get('tenants', { tenant_id: id });
      if (row && isAway(row)) throw moved(movedTexts.tenant);
      // The tenant may have come back between the two reads.
      return row && find(id);
    },
    draft: async ({ name, type }) => {
      const id = newUuid<TenantId>(random);
      const keyring = createKeyring(random);
      const { bytes, guard } = await vaultKeys.sealKeyring({ tenant: id, keyring });
      const row = proven({ keyring }, 'tenants', {
        tenant_id: id,
        version: 1,
        name,
        display_name: null,
        type,
        settings: '{}',
        quotas: '{}',
        keyring: bytes,
        created_at: clock.now(),
        modified_by: null,
        modified_at: null,
        deleted_at: null,
        away_until: null,
      });
      remember(id, { wrapped: bytes, keyring });
      return { row, tenant: tenantOf(row, keyring), guard: guardedBy(guard) };
    },
    keyringOf,
    rekeyed: async ({ proof: _proof, ...row }, keyring) => {
      const { tenant_id: tenant } = row;
      const replaced = row.keyring;
      const { bytes, guard } = await vaultKeys.sealKeyring({ tenant, keyring, replaced });
      const version = row.version + 1;
      const stored = proven({ keyring }, 'tenants', { ...row, version, keyring: bytes });
      const { remove, insert } = guardedBy(guard);
      return {
        replace: { tenants: [stored] },
        remove: { vault_keys: remove },
        insert: { vault_keys: insert },
      };
    },
    tombstone: async (row) => {
      const { mark: proof, guard } = await vaultKeys.markDeleted(tombstoneOf(row));
      return { row: { ...row, proof }, guard: guardedBy(guard) };
    },
    isTombstone: isDeleted,
    all: async () => (await store.select(allTenants)).map(unverifiedColumns),
    row: rowOf,
  };
}

/** The name of the tenant in the API. The tenant chooses it, so it is not proof of identity. */
export function nameOf({ name, display_name }: Row<'tenants'>): string {
  return display_name ?? name;
}
