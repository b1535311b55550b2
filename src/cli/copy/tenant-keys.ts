/** The keys of a tenant that moves: opened by the root key of the old vault, and sealed by that of the new one. */
import { readVaultKeys } from '../../access/keyrings/open-vault-keys.ts';
import { carryPairs, type PairPlace } from '../../access/keyrings/signing-pairs.ts';
import { readLogs } from '../../audit/read.ts';
import { StateWalk } from '../../audit/state-walk.ts';
import { LogVerifier } from '../../audit/verify.ts';
import { systemClock } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import { pooledRandom } from '../../base/random.ts';
import type { Keyring } from '../../keys/keyring.ts';
import { RootKeyError, type SharedKeys } from '../../keys/root/root-key.ts';
import { openRootKeys } from '../../keys/root/sources.ts';
import { detailed, systemEntry } from '../../rules/log-entries.ts';
import { isProven, proven } from '../../rules/proven-row.ts';
import type { Config } from '../../runtime/config/config.ts';
import { lentKeys } from '../../runtime/lent-keys.ts';
import { openVault, type Vault } from '../../runtime/open-vault.ts';
import { NoDatabaseError, openReadOnly, type ReadOnlyStore } from '../../store/open/read-only.ts';
import { awayForGood } from '../../store/outgoing-copy.ts';
import { tenantNamed, tenantWithId } from '../../store/queries/tenants.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { vaultKeyIn } from '../backup/manifest.ts';
import { verifyRootKey } from '../backup/verify-backup.ts';

export interface TenantKeyPlaces {
  readonly tenant: TenantId;
  readonly source: Config;
  readonly target: Config;
  /** The root key of the source, where its shares were read. */
  readonly sharedKeys: SharedKeys | undefined;
}

/** The row of a tenant in a vault, as it is stored. */
export async function rowIn(
  { databaseUrl, dataDir }: Config,
  tenant: TenantId,
): Promise<Row<'tenants'> | undefined> {
  const store = await openReadOnly(databaseUrl ?? dataDir);
  try {
    const [row] = await store.select(tenantWithId(tenant));
    return row && unverifiedColumns(row);
  } finally {
    await store.close();
  }
}

/** @returns the ids of the tenants of that name; none where there is no vault. */
export async function tenantsNamed(
  { databaseUrl, dataDir }: Config,
  name: string,
): Promise<readonly TenantId[]> {
  const store = await openVaultIn(databaseUrl ?? dataDir);
  try {
    const rows = (await store?.select(tenantNamed(name))) ?? [];
    return rows.map(({ tenant_id }) => tenant_id);
  } finally {
    await store?.close();
  }
}

/** Where there is none, the target of the copy says so. */
async function openVaultIn(place: string): Promise<ReadOnlyStore | undefined> {
  try {
    return await openReadOnly(place);
  } catch (error) {
    if (error instanceof NoDatabaseError) return undefined;
    throw error;
  }
}

/**
 * Seals nothing. Once the tenant has left its old vault, no other key opens the new one.
 * @throws RestoreError where the root key of the new vault is another one.
 */
export async function requireTargetKey({ databaseUrl, dataDir, rootKey }: Config): Promise<void> {
  const store = await openVaultIn(databaseUrl ?? dataDir);
  if (store === undefined) return;
  try {
    const { root_key } = vaultKeyIn(await store.select(rootVaultKeys));
    await verifyRootKey(store, root_key, { rootKey, sharedKeys: lentKeys(dataDir) });
  } catch (error) {
    if (!(error instanceof RestoreError || error instanceof RootKeyError)) throw error;
    throw new RestoreError(
      `The new vault needs its own root key, which --to-env names: ${error.message}`,
      { cause: error },
    );
  } finally {
    await store.close();
  }
}

/** The vault as of one moment, with what its root key opens. */
async function withKeys<T>(
  { source, sharedKeys }: Pick<TenantKeyPlaces, 'source' | 'sharedKeys'>,
  work: (place: PairPlace) => Promise<T>,
): Promise<T> {
  const { rootKey, databaseUrl, dataDir } = source;
  const store = await openReadOnly(databaseUrl ?? dataDir);
  const tools = { clock: systemClock, random: pooledRandom(), createIfMissing: false };
  try {
    const roots = await openRootKeys({ ...rootKey, ...tools, sharedKeys });
    try {
      const vaultKeys = await readVaultKeys({ ...tools, store, roots });
      if (vaultKeys) return await work({ store, vaultKeys });
      throw new RestoreError('The root key does not open the vault. Provide that of the vault.');
    } finally {
      roots.close();
    }
  } finally {
    await store.close();
  }
}

export interface VerifiedPlace {
  /** The vault of which the rows are: the old one, or the new one before it has sealed the keys. */
  readonly at: Config;
  /** What is verified, as the operator calls it. */
  readonly name: string;
}

/** As `strongroom logs verify --state` does it of the tenant. @throws RestoreError */
export async function requireIntactTenant(
  places: TenantKeyPlaces,
  { at, name }: VerifiedPlace,
): Promise<void> {
  const { tenant } = places;
  const store = await openReadOnly(at.databaseUrl ?? at.dataDir);
  try {
    const [row] = await store.select(tenantWithId(tenant));
    if (row === undefined || unverifiedColumns(row).deleted_at !== null) {
      throw new RestoreError(`${name} is not there, or was deleted. Nothing was copied.`);
    }
    const wrapped = unverifiedColumns(row).keyring;
    const keyring = await withKeys(places, ({ vaultKeys }) =>
      vaultKeys.openKeyring({ tenant, wrapped }),
    );
    const verifier = new LogVerifier({ trustedKeys: [], kept: [] });
    const walk = new StateWalk({ tenant, keyring, wasDeleted: false, store });
    for await (const record of readLogs(store, [tenant])) {
      walk.take(record);
      verifier.take(record);
    }
    const state = await walk.finish();
    const [finding] = [...verifier.finish().findings, ...state.findings];
    if (finding === undefined) return;
    throw new RestoreError(`${name} is not intact: ${finding.kind}: ${finding.message}.`);
  } finally {
    await store.close();
  }
}

/** Commits that meet a rotation of the new vault's root key. */
const triesMax = 5;

/**
 * Seals the keys of the tenant under the root key of the new vault, with an entry in its log. What an earlier call has
 * done stays.
 */
export async function sealForTarget(places: TenantKeyPlaces, movedAt: number): Promise<void> {
  const { tenant, source, target } = places;
  const row = await rowIn(source, tenant);
  if (row === undefined) throw new RestoreError('The tenant is not in its old vault any more.');
  await withKeys(places, async (from) => {
    const keyring = await from.vaultKeys.openKeyring({ tenant, wrapped: row.keyring });
    if (!isProven({ keyring }, 'tenants', row as never)) {
      throw integrityError('the row of the tenant was altered outside the vault');
    }
    const vault = await openVault(target);
    try {
      const sealing = { row, keyring, from, movedAt };
      for (let tries = 1; !(await isSealed(vault, sealing)); tries++) {
        if (tries === triesMax) throw new RestoreError('The keys of the new vault change.');
      }
    } finally {
      await vault.close();
    }
  });
}

interface TenantSealing {
  readonly row: Row<'tenants'>;
  readonly keyring: Keyring;
  readonly from: PairPlace;
  readonly movedAt: number;
}

/** @returns false where a rotation of the root key came between. */
async function isSealed(
  vault: Vault,
  { row, keyring, from, movedAt }: TenantSealing,
): Promise<boolean> {
  const { store, vaultKeys, clock } = vault;
  const { tenant_id: tenant, proof: _proof, ...columns } = row;
  const [there] = await store.select(tenantWithId(tenant));
  const version = row.version + 1;
  if (there && unverifiedColumns(there).version === version) return true;
  const now = clock.now();
  const carried = await carryPairs({ keyring, from, to: vault, now });
  const { bytes, guard } = await vaultKeys.sealKeyring({ tenant, keyring: carried.keyring });
  const guards = [...new Map([...carried.guards, guard].map((one) => [one.name, one])).values()];
  const sealed = proven({ keyring: carried.keyring }, 'tenants', {
    ...columns,
    tenant_id: tenant,
    version,
    keyring: bytes,
    away_until: awayForGood as never,
  });
  const fact = { entity: 'tenant', id: tenant, operation: 'restore' } as const;
  const detail = `moved ${new Date(movedAt).toISOString()} from another vault`;
  const { conflict } = await store.commit({
    replace: { tenants: [sealed] },
    remove: { vault_keys: guards.map(({ name }) => ({ name })) },
    insert: { vault_keys: [...guards, ...carried.rows] },
    entries: [detailed(systemEntry({ ...fact, tenant, at: now }), detail)],
  });
  return conflict === undefined;
}
