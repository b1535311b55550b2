/** What a server does on its socket: it takes shares of the root key, and lends that key to commands. */
import { isIntegrityError, VaultError } from '../base/errors.ts';
import type { Json, JsonObject } from '../base/json.ts';
import { createKeyedMutex } from '../base/keyed-mutex.ts';
import {
  type RootKey,
  RootKeyError,
  type WrappingKey,
  wrappingKeyOf,
} from '../keys/root/root-key.ts';
import type { HeldKeys } from '../keys/root/shamir.ts';
import { ShareCollection, thresholdOf } from '../keys/root/shares.ts';
import type { SocketHandler } from './root-key-socket.ts';

/** Shares that were given, of those that are needed. */
export interface UnsealProgress {
  readonly sealed: boolean;
  readonly given: number;
  readonly needed: number;
}

export interface Unsealing {
  readonly handle: SocketHandler;
  progress(): UnsealProgress;
}

export interface UnsealingOptions {
  readonly held: HeldKeys;
  /**
   * The ids of keys that may wrap what is stored, as the database has them now, the newest first. There is one, unless
   * an attacker inserted others.
   * @throws RootKeyError when there is no key with shares.
   */
  readonly wrappingKeyIds: () => Promise<readonly string[]>;
  /** The same at the start of a server that is sealed. */
  readonly knownKeyIds?: readonly string[];
  /**
   * Called with the key that the shares give.
   * @throws RootKeyError when it cannot be used: then all shares are to be given again.
   */
  readonly onKey: (key: WrappingKey, threshold: number) => Promise<void>;
}

export function createUnsealing(options: UnsealingOptions): Unsealing {
  const { held, wrappingKeyIds, onKey } = options;
  const collection = new ShareCollection();
  const inTurn = createKeyedMutex();
  /** Of the key whose shares are given, and before the first one of the newest. */
  let keyId = options.knownKeyIds?.[0];
  let isOpened = false;

  function progress(): UnsealProgress {
    const needed = (keyId === undefined ? undefined : thresholdOf(keyId)) ?? 0;
    const sealed = options.knownKeyIds !== undefined && !isOpened;
    return { sealed, given: sealed ? collection.given : needed, needed };
  }

  async function addShare(text: string): Promise<JsonObject> {
    const keyIds = await wrappingKeyIds();
    if (keyIds.every(held.has) && !progress().sealed) {
      throw new RootKeyError('this server is not sealed');
    }
    const { given, threshold, key, keyId: ofShares } = await collection.add(text, keyIds);
    keyId = ofShares;
    if (key === undefined) return { sealed: true, given, needed: threshold };
    await onKey(key, threshold);
    isOpened = true;
    return { sealed: false, given, needed: threshold };
  }

  /** Of a key that a command has made, and whose shares it has printed. */
  async function takeKey(shares: Json | undefined): Promise<JsonObject> {
    const texts = Array.isArray(shares) ? shares : [];
    const own = new ShareCollection();
    for (const text of texts) {
      const { key, threshold } = await own.add(String(text));
      if (key === undefined) continue;
      held.add(key, threshold);
      return {};
    }
    throw new RootKeyError('these are not enough shares');
  }

  async function keyOf(id: Json | undefined): Promise<RootKey> {
    const key = await held.find(String(id));
    if (key) return key;
    const { sealed, given, needed } = progress();
    throw new RootKeyError(
      sealed
        ? `the server is sealed: ${needed - given} of ${needed} shares are missing. Run "strongroom unseal"`
        : 'the server does not have this key: give its shares with "strongroom unseal"',
    );
  }

  const operations: Readonly<Record<string, (request: JsonObject) => Promise<JsonObject>>> = {
    share: ({ share }) => inTurn('share', () => addShare(String(share))),
    status: async () => ({ ...progress() }),
    take: ({ shares }) => takeKey(shares),
    current: async () => {
      const newest = await held.newest();
      const key = newest ?? (await keyOf(keyId ?? ''));
      return { key_id: (await key.current()).keyId };
    },
    find: async ({ key_id }) => {
      await keyOf(key_id);
      return {};
    },
    wrap: async ({ key_id, key, ...context }) => {
      const bytes = wrappingKeyOf(String(key));
      const { blob } = await (await keyOf(key_id)).wrap(bytes, contextOf(context));
      return { blob: Buffer.from(blob).toString('base64') };
    },
    unwrap: async ({ key_id, blob, ...context }) => {
      const root = await keyOf(key_id);
      const wrapped = {
        source: root.source,
        keyId: String(key_id),
        version: 1,
        blob: Buffer.from(String(blob), 'base64'),
      };
      try {
        const key = await root.unwrap(wrapped, contextOf(context));
        return { key: key.export().toString('base64') };
      } catch (error) {
        if (isIntegrityError(error)) return { altered: true };
        throw error;
      }
    },
  };

  return {
    progress,
    handle: async (request) => {
      const name = String(request['operation']);
      const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
      if (operation === undefined) throw new RootKeyError('the server does not know this request');
      try {
        return await operation(request);
      } catch (error) {
        if (error instanceof VaultError) throw new RootKeyError(error.message, { cause: error });
        throw error;
      }
    },
  };
}

function contextOf({ vault, tenant }: JsonObject) {
  return { vault: String(vault), tenant: String(tenant) };
}
