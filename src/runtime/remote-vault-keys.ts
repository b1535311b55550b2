/** The keys that the root key protects, for the threads: they call those of the process, and have no root key. */
import type { GuardedBytes, OpenedKeyring, VaultKeys } from '../access/keyrings/vault-keys.ts';
import type { ThreadRpc } from '../base/thread-rpc.ts';
import { Keyring, type WrappedKeyring } from '../keys/keyring.ts';

type ForThreads = Omit<VaultKeys, 'name' | 'openKeyring' | 'sealKeyring'>;

/** What the process offers to its threads. Keyrings cross as their versions, whose key objects show no bytes. */
export interface VaultKeyCalls extends ForThreads {
  openKeyring(stored: WrappedKeyring): Promise<Keyring['versions']>;
  sealKeyring(opened: SentKeyring): Promise<GuardedBytes>;
}

interface SentKeyring extends Omit<OpenedKeyring, 'keyring'> {
  readonly versions: Keyring['versions'];
}

export function vaultKeyCalls(keys: VaultKeys): VaultKeyCalls {
  return {
    openKeyring: async (stored) => (await keys.openKeyring(stored)).versions,
    sealKeyring: ({ versions, ...opened }) =>
      keys.sealKeyring({ ...opened, keyring: new Keyring(versions) }),
    markDeleted: keys.markDeleted,
    isMarkedDeleted: keys.isMarkedDeleted,
    seal: keys.seal,
    open: keys.open,
  };
}

/** @param name the public name of the vault. */
export function remoteVaultKeys(
  rpc: Pick<ThreadRpc<VaultKeyCalls>, 'call'>,
  name: string,
): VaultKeys {
  return {
    name,
    openKeyring: async (stored) => new Keyring(await rpc.call('openKeyring', stored)),
    sealKeyring: ({ keyring, ...opened }) =>
      rpc.call('sealKeyring', { ...opened, versions: keyring.versions }),
    markDeleted: (row) => rpc.call('markDeleted', row),
    isMarkedDeleted: (row) => rpc.call('isMarkedDeleted', row),
    seal: (own) => rpc.call('seal', own),
    open: (own) => rpc.call('open', own),
  };
}
