/** Opening a vault, for the server and for commands: the store, the root key and the tenants. */

import { dirname, resolve } from 'node:path';
import { requireLivingKeys } from '../access/key-rotations/living-keys.ts';
import {
  hasNoRootKey,
  openVaultKeys,
  type RootKeyProof,
} from '../access/keyrings/open-vault-keys.ts';
import { vaultKeysIn } from '../access/keyrings/vault-key-rows.ts';
import type { ProcessVaultKeys, VaultKeys } from '../access/keyrings/vault-keys.ts';
import { underStorageQuotas } from '../access/tenants/storage-quotas.ts';
import { createTenants } from '../access/tenants/tenants.ts';
import { createOwnNotes, type OwnNotes } from '../audit/own-notes.ts';
import { type ProvingTools, proving } from '../audit/proving.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { newUuid } from '../base/ids.ts';
import { pooledRandom, type Random } from '../base/random.ts';
import { RootKeyError, type SharedKeys } from '../keys/root/root-key.ts';
import { newVaultText, shamirName } from '../keys/root/shamir.ts';
import { openRootKeys, type RootKeys } from '../keys/root/sources.ts';
import { type Quarantine, silentQuarantine } from '../rules/quarantine.ts';
import type { Tenants } from '../rules/tenant.ts';
import { attachStore, openStore } from '../store/open/open.ts';
import { makePrivateDirectory } from '../store/private-directory.ts';
import { rootVaultKeys } from '../store/queries/vault-keys.ts';
import type { AttachOptions, Store, StoreOptions } from '../store/store.ts';
import { derivingEvents } from '../webhooks/events/derive.ts';
import { createSubscriptions } from '../webhooks/subscriptions.ts';
import { type StoreWith, storeWithSteps } from './commit-steps.ts';
import type { Config } from './config/config.ts';
import { lentKeys } from './lent-keys.ts';

/** The parts that the server and the command line share, over one store. */
export interface Vault {
  /** The store for jobs and commands. */
  readonly store: Store;
  /** The same store with more commit steps, for requests. */
  readonly storeWith: StoreWith;
  readonly tenants: Tenants;
  /** That of the tenants, for rows that are read without one. */
  readonly quarantine: Quarantine;
  readonly roots: RootKeys;
  readonly vaultKeys: ProcessVaultKeys;
  readonly clock: Clock;
  readonly random: Random;
  /** Notes of all threads of the process, in the thread that opened the vault. */
  readonly ownNotes: OwnNotes;
  /** `altered` where a tenant has proven the root key in place of the row for that. */
  readonly rootKeyProof: RootKeyProof;
  close(): Promise<void>;
}

type VaultParts = Pick<
  Vault,
  'store' | 'storeWith' | 'tenants' | 'quarantine' | 'clock' | 'random'
>;

/** On another thread, without a root key. */
export interface AttachedVault extends VaultParts, Pick<Vault, 'close'> {
  readonly vaultKeys: VaultKeys;
}

export interface VaultOptions extends Pick<StoreOptions, 'onCommitted' | 'onGroup'> {
  readonly clock?: Clock;
  /** Opens the store, a parameter like the clock; {@link openStore} unless given. */
  readonly openStore?: typeof openStore;
  /** For altered rows; {@link silentQuarantine} unless given. */
  readonly quarantine?: Quarantine;
  /** Keys of the source `shamir`; those of the server with the same data directory unless given. */
  readonly sharedKeys?: SharedKeys;
}

export interface AttachedVaultOptions
  extends Pick<AttachOptions, 'epochs' | 'threads' | 'owner' | 'onCommitted' | 'onGroup'> {
  readonly vaultKeys: VaultKeys;
  readonly clock: Clock;
  readonly quarantine: Quarantine;
  /** Called with each note of a grown log that the thread has stored. */
  readonly onNoted: ProvingTools['onNoted'];
}

/** The vault on another thread of the process that opened it, has proved its root key, and keeps it. */
export async function attachVault(
  { databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>,
  { vaultKeys, clock, quarantine, onNoted, ...attaching }: AttachedVaultOptions,
): Promise<AttachedVault> {
  const random = pooledRandom();
  const newStreamId = () => newUuid(random);
  const store = await attachStore({ ...attaching, databaseUrl, dataDir, newStreamId, clock });
  const tenants = createTenants({ store, vaultKeys, clock, random, quarantine });
  return { ...vaultOf({ store, tenants, quarantine, clock, random, onNoted }), vaultKeys };
}

/** Opens the store and proves that the root key belongs to it, before anything is changed. */
export async function openVault(
  config: Config,
  {
    clock = systemClock,
    onCommitted,
    onGroup,
    quarantine = silentQuarantine,
    ...opening
  }: VaultOptions = {},
): Promise<Vault> {
  const random = pooledRandom();
  const open = opening.openStore ?? openStore;
  const store = await open(storeOptionsOf(config, { clock, random, onCommitted, onGroup }));
  let roots: RootKeys | undefined;
  try {
    const isEmpty = await hasNoRootKey(store);
    if (isEmpty) makePlaceOfRootKey(config);
    const { rootKey } = config;
    const { sharedKeys = lentKeys(config.dataDir) } = opening;
    roots = await openRootKeys({
      ...rootKey,
      createIfMissing: isEmpty,
      clock,
      random,
      sharedKeys,
    });
    const opened = roots;
    const { vaultKeys, proof: rootKeyProof } = await openVaultKeys({ store, roots, clock, random });
    const tenants = createTenants({ store, vaultKeys, clock, random, quarantine });
    const ownNotes = createOwnNotes();
    const vault = vaultOf({ store, tenants, quarantine, clock, random, onNoted: ownNotes.add });
    const close = async () => {
      opened.close();
      await vault.close();
    };
    return { ...vault, roots, vaultKeys, ownNotes, rootKeyProof, close };
  } catch (error) {
    roots?.close();
    await store.close();
    throw error;
  }
}

/**
 * The ids of {@link sharedKeyIds}, before the vault is opened.
 * @throws RootKeyError as that does, and when nothing is stored yet.
 */
export async function readSharedKeyIds(
  config: Config,
  { clock = systemClock, ...opening }: Pick<VaultOptions, 'clock' | 'openStore'> = {},
): Promise<readonly string[]> {
  const open = opening.openStore ?? openStore;
  const store = await open(storeOptionsOf(config, { clock, random: pooledRandom() }));
  try {
    if (await hasNoRootKey(store)) throw new RootKeyError(newVaultText);
    return await sharedKeyIds(store);
  } finally {
    await store.close();
  }
}

/**
 * The ids of the root keys of which people hold shares, and that may wrap what is stored: nothing is proven here. The
 * newest first.
 * @throws RootKeyError when there is none.
 */
export async function sharedKeyIds(store: Pick<Store, 'select'>): Promise<readonly string[]> {
  const { current } = vaultKeysIn(await store.select(rootVaultKeys));
  const headers = current.flatMap(({ header }) => header ?? []);
  const shared = headers.filter(({ source }) => source === shamirName);
  if (shared.length > 0) return shared.map(({ keyId }) => keyId);
  const source = headers[0]?.source ?? 'file';
  throw new RootKeyError(
    `the keys in this database are wrapped by the source ${source}, which has no shares. Set ` +
      `STRONGROOM_ROOT_KEY_SOURCE=${source}, and move to shares with "strongroom keys rotate root --to shamir"`,
  );
}

function storeOptionsOf(
  { databaseUrl, isDistributed, dataDir, freeBytesMin }: Config,
  {
    clock,
    random,
    ...watching
  }: Pick<VaultParts, 'clock' | 'random'> & Pick<StoreOptions, 'onCommitted' | 'onGroup'>,
): StoreOptions {
  // Here, where what the system refuses is still known as that.
  if (databaseUrl === undefined) makePrivateDirectory(dataDir);
  const newStreamId = () => newUuid(random);
  return { databaseUrl, isDistributed, dataDir, freeBytesMin, newStreamId, clock, ...watching };
}

function vaultOf({
  store,
  tenants,
  quarantine,
  clock,
  random,
  onNoted,
}: Omit<VaultParts, 'storeWith'> & Pick<ProvingTools, 'onNoted'>): VaultParts &
  Pick<Vault, 'close'> {
  const subscriptions = createSubscriptions({ store, tenants, clock });
  const storeWith = storeWithSteps(store, {
    deriveEvents: derivingEvents({ tenants, subscriptions, random }),
    proveLog: proving({ store, tenants, clock, onNoted }),
    requireLivingKeys: requireLivingKeys(tenants),
    limitStorage: underStorageQuotas({ store, tenants, clock }),
  });
  const close = () => store.close();
  return { store: storeWith({}), storeWith, tenants, quarantine, clock, random, close };
}

/**
 * The embedded engine has its data directory by now. With PostgreSQL nothing else is stored there, and a
 * directory that an operator named for the key is not made: its name may be misspelled.
 */
function makePlaceOfRootKey({ dataDir, rootKey, rootKeyFile }: Config): void {
  if (rootKey.source !== 'file' || resolve(dirname(rootKeyFile)) !== resolve(dataDir)) return;
  makePrivateDirectory(dataDir);
}
