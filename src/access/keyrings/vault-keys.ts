/** The keys that the root key protects: those that open keyrings, and the vault's own. The process has them once. */
import { type Clock, second } from '../../base/clock.ts';
import { integrityError, isIntegrityError, type VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import {
  type Binding,
  keyVersionOf,
  openingKeys,
  openText,
  sealsText,
  sealText,
  type VersionedKeys,
} from '../../keys/envelope.ts';
import {
  type Keyring,
  openKeyring,
  rootKeys,
  type WrappedKeyring,
  wrapKeyring,
} from '../../keys/keyring.ts';
import { newWrappingKey, type RootKey, type WrappingKey } from '../../keys/root/root-key.ts';
import type { RootKeys } from '../../keys/root/sources.ts';
import { type KeyHeader, readStored, withHeader } from '../../keys/root/wrapped.ts';
import { isTombstone, sealTombstone, type TombstoneRow } from '../../keys/tombstone.ts';
import { vaultName } from '../../keys/vault-name.ts';
import { grantOf, type VaultJob } from '../../rules/openings.ts';
import { rootVaultKeys } from '../../store/queries/vault-keys.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { createKeyCache, keyUnavailable } from './key-cache.ts';
import {
  firstProven,
  type StoredVaultKey,
  vaultKeyBinding,
  vaultKeysIn,
} from './vault-key-rows.ts';

/**
 * The row of the key under which something was sealed. The commit that stores the sealed value removes it and inserts
 * it again, so that the commit conflicts if a rotation has replaced that key since: see `guardedBy`.
 */
export type KeyGuard = Row<'vault_keys'>;

/** All methods take and return data, so that the threads of a process can call those of the process. */
export interface VaultKeys {
  /** The public name of the vault. */
  readonly name: string;
  /**
   * Opens a stored keyring, of either form.
   * @throws VaultError `integrity` if it is of another tenant or vault, or altered; `unavailable` while the source of
   * the root key cannot be reached, and the keyring's key was not unwrapped before.
   */
  openKeyring(stored: WrappedKeyring): Promise<Keyring>;
  /**
   * Seals a keyring for storage, under the tenant's key-encryption key: the one of the stored keyring that it replaces,
   * or a new one, which the root key wraps, for a new tenant and after a rotation of the root key.
   */
  sealKeyring(opened: OpenedKeyring): Promise<GuardedBytes>;
  /** base64 of the mark of a deleted tenant's row. */
  markDeleted(row: TombstoneRow): Promise<{ readonly mark: string; readonly guard: KeyGuard }>;
  /** False when the row was marked as deleted, or changed since, outside the vault. */
  isMarkedDeleted(marked: MarkedRow): Promise<boolean>;
  /** Seals a secret of the vault itself. */
  seal(own: OwnText): Promise<GuardedBytes>;
  /** @throws VaultError `integrity` when {@link seal} did not seal it for this place. */
  open(own: OwnSealed): Promise<string>;
}

export interface OpenedKeyring {
  readonly tenant: TenantId;
  readonly keyring: Keyring;
  /** The stored keyring that this one replaces; absent for a new tenant. */
  readonly replaced?: Uint8Array;
}

export interface GuardedBytes {
  readonly bytes: Uint8Array;
  readonly guard: KeyGuard;
}

export interface MarkedRow extends TombstoneRow {
  readonly mark: string;
}

export interface OwnText {
  readonly binding: Binding;
  readonly text: string;
}

export interface OwnSealed {
  readonly job: VaultJob;
  readonly binding: Binding;
  readonly sealed: Uint8Array;
}

/** The part of a change that makes it conflict once the key of the guard was replaced. */
export function guardedBy({ name, ...row }: KeyGuard) {
  return { remove: [{ name }], insert: [{ name, ...row }] };
}

/** The vault's own key of one generation. */
export interface VaultKey {
  readonly stored: StoredVaultKey;
  readonly key: WrappingKey;
  readonly keys: VersionedKeys;
}

/** What the process has, in addition to what its threads may call. */
export interface ProcessVaultKeys extends VaultKeys {
  readonly vault: string;
  /** Reads the rows again, and unwraps what is new. */
  refresh(): Promise<VaultKeyState>;
  /** The key that opens a keyring, for a rotation; `undefined` in the first form. */
  wrapKey(tenant: TenantId | '', to: WrapTarget): Promise<NewWrappedKey>;
}

export interface VaultKeyState {
  /** `undefined` when its row was altered outside the vault. */
  readonly current: VaultKey | undefined;
  readonly previous: VaultKey | undefined;
}

export interface WrapTarget {
  readonly root: RootKey;
  readonly generation: number;
}

export interface NewWrappedKey {
  readonly key: WrappingKey;
  readonly header: KeyHeader;
}

export interface VaultKeysOptions {
  readonly store: Pick<Store, 'select'>;
  readonly roots: RootKeys;
  readonly clock: Clock;
  readonly random: Random;
  /** The id of the vault. */
  readonly vault: string;
}

/** A key that is not known is looked for in the database at most once in this time. */
const missingAskedMs = second / 4;

export function createVaultKeys({
  store,
  roots,
  clock,
  random,
  vault,
}: VaultKeysOptions): ProcessVaultKeys {
  let state: VaultKeyState = { current: undefined, previous: undefined };
  let reading: Promise<VaultKeyState> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const cache = createKeyCache({
    clock,
    unwrap: (tenant, header) => unwrapped({ roots, vault }, tenant, header),
  });

  async function read(): Promise<VaultKeyState> {
    const stored = vaultKeysIn(await store.select(rootVaultKeys));
    const current = await firstProven(stored.current, known);
    const previous = await firstProven(stored.previous, known);
    state = { current, previous };
    readAt = clock.now();
    return state;
  }

  /** Unwrapped once for as long as its row stays the same. */
  async function known(stored: StoredVaultKey): Promise<VaultKey | undefined> {
    const same = [state.current, state.previous].find(
      (one) =>
        one?.stored.row.name === stored.row.name &&
        Buffer.compare(one.stored.row.private_key, stored.row.private_key) === 0,
    );
    return same ?? (await openVaultKey((header) => cache.get('', header), stored));
  }

  const refresh = () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };

  /** The keys of the vault that have the id, which a sealed value names. */
  async function keysOf(id: number | undefined): Promise<VersionedKeys | undefined> {
    if (id === undefined) return undefined;
    const matching = () =>
      [state.current, state.previous].find((one) => one?.keys.activeVersion === id)?.keys;
    const known = matching();
    if (known) return known;
    const age = clock.now() - readAt;
    if (age < 0 || age >= missingAskedMs) await refresh();
    return matching() ?? sealedDirectly(id);
  }

  /**
   * The first form is only accepted before the first rotation has ended: whoever holds a root key that was rotated out
   * could otherwise write it.
   */
  async function sealedDirectly(id: number): Promise<VersionedKeys | undefined> {
    const { current, previous } = state;
    const isRotated = current !== undefined && current.stored.generation > 1;
    return isRotated && previous === undefined ? undefined : roots.sealedDirectly(id);
  }

  /** The current key, as the database has it now. */
  async function sealing(): Promise<VaultKey> {
    const { current } = await refresh();
    if (current) return current;
    throw integrityError("the row of the vault's own key is missing, or was altered");
  }

  async function wrapKey(
    tenant: TenantId | '',
    { root, generation }: WrapTarget,
  ): Promise<NewWrappedKey> {
    const key = newWrappingKey(random);
    const wrapped = await root.wrap(key, { vault, tenant });
    const header = { ...wrapped, vault, generation };
    if (tenant !== '') cache.set(tenant, header, key);
    return { key, header };
  }

  /** By the root key that wraps the vault's own key. */
  async function wrapNewKey(
    tenant: TenantId,
    { header, generation }: Pick<StoredVaultKey, 'header' | 'generation'>,
  ): Promise<NewWrappedKey> {
    const root = header && (await roots.unwrapping(header));
    if (root === undefined) throw notConfigured(header);
    return wrapKey(tenant, { root, generation });
  }

  return {
    vault,
    name: vaultName(vault),
    refresh,
    wrapKey,
    openKeyring: async ({ tenant, wrapped }) => {
      const stored = readStored(wrapped);
      if (stored === undefined) throw unusable(tenant, 'does not have the form of a keyring');
      const { header, sealed } = stored;
      const keys = header
        ? rootKeys(await cache.get(tenant, header))
        : await keysInFirstForm(tenant, sealed);
      const keyring = openKeyring(keys, grantOf('load keyrings'), { tenant, wrapped: sealed });
      if (header?.keyring !== undefined && header.keyring !== keyring.id) {
        throw unusable(tenant, 'is another one than the row says');
      }
      return keyring;
    },
    sealKeyring: async ({ tenant, keyring, replaced }) => {
      const { stored } = await sealing();
      const { header, generation, row: guard } = stored;
      const before = replaced && readStored(replaced)?.header;
      const made =
        before?.generation === generation
          ? { key: await cache.get(tenant, before), header: before }
          : await wrapNewKey(tenant, { header, generation });
      const sealed = wrapKeyring(rootKeys(made.key), tenant, keyring, random);
      return { bytes: withHeader({ ...made.header, keyring: keyring.id }, sealed), guard };
    },
    markDeleted: async (row) => {
      const { keys, stored } = await sealing();
      return { mark: sealTombstone(keys, row, random), guard: stored.row };
    },
    isMarkedDeleted: async ({ mark, ...row }) => {
      const keys = await keysOf(keyVersionOf(Buffer.from(mark, 'base64')));
      return keys !== undefined && isTombstone(keys, row, mark);
    },
    seal: async ({ binding, text }) => {
      const { keys, stored } = await sealing();
      return { bytes: sealText(keys, binding, text, random), guard: stored.row };
    },
    open: async ({ job, binding, sealed }) => {
      const keys = await keysOf(keyVersionOf(sealed));
      if (keys === undefined) {
        throw integrityError(`${binding.id} is not sealed by a key of this vault`);
      }
      return openText(openingKeys(keys, grantOf(job)), binding, sealed).reveal();
    },
  };

  async function keysInFirstForm(tenant: TenantId, sealed: Uint8Array): Promise<VersionedKeys> {
    const id = keyVersionOf(sealed);
    const keys = id === undefined ? undefined : await sealedDirectly(id);
    if (keys) return keys;
    throw unusable(tenant, 'is not sealed by this root key');
  }
}

export interface Unwrapping {
  readonly roots: RootKeys;
  readonly vault: string;
}

/** @throws VaultError as `RootKey.unwrap` does, and `unavailable` when its source is not configured. */
export async function unwrapped(
  { roots, vault }: Unwrapping,
  tenant: string,
  header: KeyHeader,
): Promise<WrappingKey> {
  if (header.vault !== vault) throw integrityError('a wrapped key belongs to another vault');
  const root = await roots.unwrapping(header);
  if (root === undefined) throw notConfigured(header);
  return root.unwrap(header, { vault, tenant });
}

/**
 * The vault's own key in the row; `undefined` when the row is not as the vault wrote it.
 * @throws VaultError `unavailable` when its source cannot be reached.
 */
export async function openVaultKey(
  unwrap: (header: KeyHeader) => Promise<WrappingKey>,
  stored: StoredVaultKey,
): Promise<VaultKey | undefined> {
  const { header, sealed, row } = stored;
  if (header === undefined) return undefined;
  try {
    const key = await unwrap(header);
    const keys = rootKeys(key);
    const isOwn = sealsText(keys, vaultKeyBinding(row.name), { sealed, text: header.vault });
    return isOwn ? { stored, key, keys } : undefined;
  } catch (error) {
    if (isIntegrityError(error)) return undefined;
    throw error;
  }
}

function notConfigured(header: KeyHeader | undefined): VaultError {
  const by = header ? `${header.source} ${header.keyId}` : 'an unknown source';
  return keyUnavailable(
    `a key is wrapped by ${by}, and no root key of this server is that one: set the variables of its source`,
  );
}

function unusable(tenant: TenantId, reason: string): VaultError {
  return integrityError(`the keyring of tenant ${tenant} ${reason}`);
}
