/** The source `shamir`: people hold shares of the root key, and enough of them unseal a server. */
import type { KeyObject } from 'node:crypto';
import { VaultError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { localRootKey } from './local-key.ts';
import { type RootKey, RootKeyError, type RootKeySource, type SharedKeys } from './root-key.ts';
import { shareKeyId } from './shares.ts';

/** The value of STRONGROOM_ROOT_KEY_SOURCE. */
export const shamirName = 'shamir';

const origin = 'shares (shamir)';

/** How to begin. */
export const newVaultText =
  'a new vault has no root key of which there could be shares. Begin with another source, for example ' +
  'STRONGROOM_ROOT_KEY_SOURCE=file. Start the vault, run "strongroom keys rotate root --to shamir --shares 5 ' +
  '--threshold 3", hand out the shares, and then set STRONGROOM_ROOT_KEY_SOURCE=shamir';

export const shamirSource: RootKeySource = {
  name: shamirName,
  variables: [],
  isConfigured: (_read, sharedKeys) => sharedKeys !== undefined,
  open: async ({ createIfMissing, sharedKeys }) => {
    if (createIfMissing) throw new RootKeyError(newVaultText);
    if (sharedKeys === undefined) throw new RootKeyError('shares cannot be given to this command');
    const newest = async () => (await sharedKeys.newest()) ?? noKey();
    const root: RootKey = {
      source: shamirName,
      origin,
      current: async () => (await newest()).current(),
      wrap: async (key, context) => (await newest()).wrap(key, context),
      unwrap: async (wrapped, context) => {
        const key = (await sharedKeys.find(wrapped.keyId)) ?? noKey();
        return key.unwrap(wrapped, context);
      },
      close: () => undefined,
    };
    return root;
  },
  renewal: {
    begin: async ({ sharedKeys }) => sharedKeys?.renew?.(),
    end: async () => undefined,
  },
};

function noKey(): never {
  throw new VaultError('unavailable', {
    public:
      'The vault cannot reach the key that protects this tenant. Nothing was done; try again.',
    internal: 'shares of the root key were not given to this server: run "strongroom unseal" there',
    headers: { 'retry-after': '1' },
  });
}

/** Keys whose bytes are in this process. */
export interface HeldKeys extends SharedKeys {
  /** @returns the key as a root key, which is the newest from now on. */
  add(key: KeyObject, threshold: number): RootKey;
  has(keyId: string): boolean;
}

export function createHeldKeys(random: Random): HeldKeys {
  const held = new Map<string, RootKey>();
  return {
    has: (keyId) => held.has(keyId),
    find: async (keyId) => held.get(keyId),
    newest: async () => [...held.values()].at(-1),
    add: (key, threshold) => {
      const keyId = shareKeyId(key, threshold);
      const root = sharedRootKey(key, keyId, random);
      held.delete(keyId);
      held.set(keyId, root);
      return root;
    },
  };
}

/** The id with which it is stored also says how many shares it needs. */
function sharedRootKey(key: KeyObject, keyId: string, random: Random): RootKey {
  const local = localRootKey({ source: shamirName, origin, random, load: () => [key] });
  return {
    source: shamirName,
    origin,
    current: async () => ({ keyId, version: 1 }),
    wrap: async (plain, context) => ({ ...(await local.wrap(plain, context)), keyId }),
    unwrap: async (wrapped, context) => {
      const { keyId: ownId } = await local.current();
      return local.unwrap({ ...wrapped, keyId: ownId }, context);
    },
    close: () => undefined,
  };
}
