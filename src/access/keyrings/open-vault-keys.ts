/** Checks that a root key belongs to this database, and makes the vault's own key at the first start. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Clock, second } from '../../base/clock.ts';
import { isIntegrityError, VaultError } from '../../base/errors.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import type { Random } from '../../base/random.ts';
import { keyVersionOf, requireAuthentic, sealsText } from '../../keys/envelope.ts';
import { keyringBinding, rootKeys } from '../../keys/keyring.ts';
import { RootKeyError } from '../../keys/root/root-key.ts';
import { isLocal, isLocalName, type RootKeys } from '../../keys/root/sources.ts';
import { type KeyHeader, readStored } from '../../keys/root/wrapped.ts';
import { isTombstone } from '../../keys/tombstone.ts';
import { newVaultId } from '../../keys/vault-name.ts';
import { anyTenant, tenantsAfter } from '../../store/queries/tenants.ts';
import { allVaultKeys, rootVaultKeys } from '../../store/queries/vault-keys.ts';
import type { Store } from '../../store/store.ts';
import { unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { tombstoneOf } from './tombstone-row.ts';
import {
  firstProven,
  formerCheckName,
  type StoredVaultKey,
  vaultKeyBinding,
  vaultKeyBytes,
  vaultKeyName,
  vaultKeysIn,
} from './vault-key-rows.ts';
import { createVaultKeys, openVaultKey, type ProcessVaultKeys, unwrapped } from './vault-keys.ts';

const formerText = 'strongroom';

/**
 * Tenants that are tried if the row of the vault's key does not prove the root key: an attacker who can write to one
 * row of the database must not be able to prevent the start.
 */
const tenantsTried = 8;

/** Attempts to reach the source of the root key at a start. A supervisor starts the process again after the last. */
const attemptsMax = 4;
const attemptPauses = { firstMs: second / 4, maxMs: second };

export interface VaultKeysTools {
  readonly store: Pick<Store, 'select'>;
  readonly roots: RootKeys;
  readonly clock: Clock;
  readonly random: Random;
}

/** True of a store that nothing was sealed in yet. */
export async function hasNoRootKey(store: Pick<Store, 'select'>): Promise<boolean> {
  if ((await store.select(allVaultKeys)).length > 0) return false;
  return (await store.select(anyTenant)).length === 0;
}

/** `altered`: the root key is proven, and there is a row that the vault did not write. */
export type RootKeyProof = 'proven' | 'altered';

export interface OpenedVaultKeys {
  readonly vaultKeys: ProcessVaultKeys;
  readonly proof: RootKeyProof;
}

type RootKeyNames = Pick<KeyHeader, 'source' | 'keyId'>;

/** The start is refused: the root key is not the one that sealed what is stored. */
export class ForeignRootKeyError extends Error {
  constructor(origin: string, header: RootKeyNames | undefined) {
    const needed = header ? ` (key ${header.keyId} of the source ${header.source})` : '';
    super(
      `The root key (${origin}) does not open the keys stored in this database: it is another ` +
        `root key than the one they were sealed with${needed}, or the database was altered. Restore the right ` +
        'root key from its backup. Nothing was changed.',
    );
    this.name = 'ForeignRootKeyError';
  }
}

/**
 * Makes the vault's own key if there is none yet: in an empty database, to which this root key then belongs, and in
 * one that an earlier release wrote. Several servers may start at once.
 * @throws ForeignRootKeyError, or RootKeyError when its source cannot be reached; nothing has changed then.
 */
export async function openVaultKeys(
  tools: VaultKeysTools & { readonly store: Pick<Store, 'record'> },
): Promise<OpenedVaultKeys> {
  const { store, roots, random } = tools;
  for (;;) {
    const found = await findVault(tools);
    if (found.kind === 'foreign') throw foreign(roots, found.stored);
    const { vault } = found;
    if (found.kind !== 'new') return withKeys(tools, vault, found.kind);
    const { generation } = found;
    const name = vaultKeyName(generation);
    const isMade = await makeVaultKey(tools, { vault, generation, name, former: found.altered });
    if (found.altered && isMade) return withKeys(tools, vault, 'altered');
  }

  async function makeVaultKey(
    { clock }: VaultKeysTools,
    { vault, generation, name, former }: NewVaultKey,
  ): Promise<boolean> {
    const keys = createVaultKeys({ ...tools, vault });
    const made = await reached(() => keys.wrapKey('', { root: roots.chosen, generation }));
    const private_key = vaultKeyBytes({ name, ...made }, random);
    // With a conflict another server has written it, perhaps under another root key.
    const { conflict } = await store.record({
      ...(former && { remove: { vault_keys: [{ name: former.name }] } }),
      insert: { vault_keys: [{ name, private_key, created_at: clock.now() }] },
    });
    return conflict === undefined;
  }
}

/**
 * The same for commands that only read, over a database of any release.
 * @returns `undefined` where the root key does not open what is stored.
 * @throws RootKeyError when its source cannot be reached.
 */
export async function readVaultKeys(tools: VaultKeysTools): Promise<ProcessVaultKeys | undefined> {
  const found = await findVault(tools);
  if (found.kind === 'foreign') return undefined;
  const keys = createVaultKeys({ ...tools, vault: found.vault });
  await keys.refresh();
  return keys;
}

interface NewVaultKey {
  readonly vault: string;
  readonly generation: number;
  readonly name: string;
  /** A row that was altered, to be removed. */
  readonly former: Row<'vault_keys'> | undefined;
}

async function withKeys(
  tools: VaultKeysTools,
  vault: string,
  proof: RootKeyProof,
): Promise<OpenedVaultKeys> {
  const vaultKeys = createVaultKeys({ ...tools, vault });
  await vaultKeys.refresh();
  return { vaultKeys, proof };
}

type FoundVault =
  | { readonly kind: 'proven' | 'altered'; readonly vault: string }
  | {
      readonly kind: 'new';
      readonly vault: string;
      readonly generation: number;
      readonly altered?: Row<'vault_keys'>;
    }
  | { readonly kind: 'foreign'; readonly stored: StoredVaultKey | undefined };

async function findVault({ store, roots, random }: VaultKeysTools): Promise<FoundVault> {
  const rows = await store.select(rootVaultKeys);
  const { current } = vaultKeysIn(rows);
  const vault = await firstProven(current, (one) => provenVault(roots, one));
  if (vault !== undefined) return { kind: current.length === 1 ? 'proven' : 'altered', vault };
  const former = rows.find(({ name }) => name === formerCheckName);
  const formerKey = former && (await formerKeyOf(roots, former));
  const stored = await store.select(tenantsAfter(undefined, tenantsTried));
  // No keyring of a tenant is used here: what the root key protects in the row proves the root key.
  const some = stored.map(unverifiedColumns);
  const proof = await firstProof(roots, some);
  const isProven = formerKey !== undefined || proof !== undefined;
  const [newest] = current;
  if (newest) {
    if (!isProven) return { kind: 'foreign', stored: newest };
    return { kind: 'altered', vault: proof?.vault ?? newVaultId(random) };
  }
  if ((former !== undefined || some.length > 0) && !isProven) {
    return { kind: 'foreign', stored: undefined };
  }
  return {
    kind: 'new',
    vault: proof?.vault ?? newVaultId(random, await formerRootKey(roots, former, some)),
    generation: proof?.generation ?? 1,
    ...(former && formerKey === undefined && { altered: former }),
  };
}

/**
 * The vault that the row names, if the root key proves the row.
 * @throws RootKeyError when its source cannot be reached.
 */
async function provenVault(roots: RootKeys, stored: StoredVaultKey): Promise<string | undefined> {
  const { header } = stored;
  const root = header && (await roots.unwrapping(header));
  if (header === undefined || root === undefined) return undefined;
  const { vault } = header;
  const opened = await reached(() =>
    openVaultKey((own) => unwrapped({ roots, vault }, '', own), stored),
  );
  return opened && vault;
}

/** The root key that sealed the word of an earlier release. */
async function formerKeyOf(roots: RootKeys, { private_key }: Row<'vault_keys'>) {
  const id = keyVersionOf(private_key);
  const keys = id === undefined ? undefined : await roots.sealedDirectly(id);
  const binding = vaultKeyBinding(formerCheckName);
  const isOwn = ifIntact(
    () => keys && sealsText(keys, binding, { sealed: private_key, text: formerText }),
  );
  return isOwn ? keys : undefined;
}

/** The root key of a vault that an earlier release made; any of its values names it. */
async function formerRootKey(
  roots: RootKeys,
  former: Row<'vault_keys'> | undefined,
  [tenant]: readonly Row<'tenants'>[],
) {
  const sealed = former?.private_key ?? tenant?.keyring;
  const id = sealed && keyVersionOf(sealed);
  return id === undefined ? undefined : roots.formerKey(id);
}

interface TenantProof {
  /** Absent for a keyring of an earlier release, which names no vault. */
  readonly vault?: string;
  readonly generation?: number;
}

async function firstProof(
  roots: RootKeys,
  rows: readonly Row<'tenants'>[],
): Promise<TenantProof | undefined> {
  for (const row of rows) {
    const proof = await proofOf(roots, row);
    if (proof) return proof;
  }
  return undefined;
}

/** Of a deleted tenant the keyring is gone, and its mark is sealed instead. */
async function proofOf(roots: RootKeys, row: Row<'tenants'>): Promise<TenantProof | undefined> {
  if (row.deleted_at !== null) {
    const id = keyVersionOf(Buffer.from(row.proof, 'base64'));
    const keys = id === undefined ? undefined : await roots.sealedDirectly(id);
    return keys && isTombstone(keys, tombstoneOf(row), row.proof) ? {} : undefined;
  }
  const { tenant_id: tenant } = row;
  const stored = readStored(row.keyring);
  if (stored === undefined) return undefined;
  const { header, sealed } = stored;
  const binding = keyringBinding(tenant);
  if (header === undefined) {
    const id = keyVersionOf(sealed);
    const keys = id === undefined ? undefined : await roots.sealedDirectly(id);
    if (keys === undefined) return undefined;
    return ifIntact(() => {
      requireAuthentic(keys, binding, sealed);
      return {};
    });
  }
  const { vault, generation } = header;
  const root = await roots.unwrapping(header);
  if (root === undefined) return undefined;
  return reached(async () => {
    try {
      const key = await root.unwrap(header, { vault, tenant });
      requireAuthentic(rootKeys(key), binding, sealed);
      return { vault, generation };
    } catch (error) {
      if (isIntegrityError(error)) return undefined;
      throw error;
    }
  });
}

function ifIntact<T>(test: () => T): T | undefined {
  try {
    return test();
  } catch (error) {
    if (isIntegrityError(error)) return undefined;
    throw error;
  }
}

/** @throws RootKeyError, which tells the operator why, when all attempts to reach the source have failed. */
export async function reached<T>(action: () => Promise<T>): Promise<T> {
  const growing = createGrowingPause(attemptPauses);
  for (let attempt = 1; ; attempt++) {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== 'unavailable') throw error;
      if (attempt === attemptsMax) {
        throw new RootKeyError(`${error.message}; tried ${attemptsMax} times`, { cause: error });
      }
      await pause(growing.next());
    }
  }
}

function foreign({ chosen }: RootKeys, stored: StoredVaultKey | undefined): Error {
  const { source, keyId } = stored?.header ?? {};
  if (
    source === undefined ||
    source === chosen.source ||
    (isLocalName(source) && isLocal(chosen))
  ) {
    return new ForeignRootKeyError(chosen.origin, stored?.header);
  }
  return new RootKeyError(
    `the keys in this database are wrapped by ${source} (key ${keyId}): set STRONGROOM_ROOT_KEY_SOURCE=${source} ` +
      'and its variables',
  );
}
