/** Root keys whose 32 bytes are in this process: those of a file, a variable or a command. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import { integrityError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { AeadKey, aeadKeyBytes, nonceBytes, open, seal } from '../aead.ts';
import type { VersionedKeys } from '../envelope.ts';
import { rootKeys } from '../keyring.ts';
import { type RootKey, RootKeyError, type WrapContext } from './root-key.ts';

export interface LocalRootKey extends RootKey {
  /** Whether it has the key of that id now. */
  has(keyId: string): boolean;
  /**
   * The key of that id, for what releases before version 2 of the stored form sealed under the root key directly.
   * @param id the key version that a sealed value names.
   */
  sealedDirectly(id: number): VersionedKeys | undefined;
  /** The same key, from which such a release derived the name of the vault. */
  formerKey(id: number): KeyObject | undefined;
}

export interface LocalKeyOptions {
  readonly source: string;
  readonly origin: string;
  readonly created?: boolean;
  readonly random: Random;
  /**
   * The keys as they are now: the first one wraps, the others unwrap. Called again whenever a key is missing and before
   * each wrapping, so that a key that another process replaced is followed.
   */
  readonly load: () => readonly KeyObject[];
}

/** 32 bytes in canonical base64. */
const form = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/** @throws RootKeyError, without the text, unless it is the canonical base64 of 32 bytes. */
export function parseRootKey(text: string, origin: string): KeyObject {
  if (!form.test(text.trim())) {
    throw new RootKeyError(`the root key (${origin}) is not the base64 of ${aeadKeyBytes} bytes`);
  }
  return createSecretKey(text.trim(), 'base64');
}

/** Names a key by 32 bits of a digest that is keyed by itself. */
export function localKeyId(key: KeyObject): string {
  return idText(rootKeys(key).activeVersion);
}

interface HeldKey {
  readonly key: KeyObject;
  readonly id: string;
  readonly aead: AeadKey;
  readonly direct: VersionedKeys;
}

/** @throws RootKeyError when there is no usable key; nothing has changed then. */
export function localRootKey({
  source,
  origin,
  created = false,
  random,
  load,
}: LocalKeyOptions): LocalRootKey {
  let held = heldKeys(load());

  function reload(): readonly HeldKey[] {
    const loaded = load();
    const isSame =
      loaded.length === held.length && loaded.every((key, index) => held[index]?.key.equals(key));
    if (!isSame) held = heldKeys(loaded);
    return held;
  }

  /** What cannot be read any more leaves the keys that were. */
  function find(matches: (one: HeldKey) => boolean): HeldKey | undefined {
    const known = held.find(matches);
    if (known) return known;
    try {
      return reload().find(matches);
    } catch (error) {
      if (error instanceof RootKeyError) return undefined;
      throw error;
    }
  }

  function wrapping(): HeldKey {
    const [first] = reload();
    if (first === undefined) throw new RootKeyError(`the root key (${origin}) is missing`);
    return first;
  }

  return {
    source,
    origin,
    created,
    current: async () => ({ keyId: wrapping().id, version: 1 }),
    has: (keyId) => find(({ id }) => id === keyId) !== undefined,
    sealedDirectly: (id) => find((one) => one.direct.activeVersion === id)?.direct,
    formerKey: (id) => find((one) => one.direct.activeVersion === id)?.key,
    wrap: async (key, context) => {
      const { id: keyId, aead } = wrapping();
      const nonce = random(nonceBytes);
      const plaintext = key.export();
      const associatedData = associatedDataOf(context, keyId);
      const ciphertext = seal(aead, { nonce, plaintext, associatedData });
      plaintext.fill(0);
      return { source, keyId, version: 1, blob: Buffer.concat([nonce, ciphertext]) };
    },
    unwrap: async ({ keyId, blob }, context) => {
      const one = find(({ id }) => id === keyId);
      if (one === undefined) throw integrityError(`the root key (${origin}) is not ${keyId}`);
      const plaintext = open(one.aead, {
        nonce: Buffer.alloc(nonceBytes, blob.subarray(0, nonceBytes)),
        ciphertext: blob.subarray(nonceBytes),
        associatedData: associatedDataOf(context, keyId),
      });
      if (plaintext?.length !== aeadKeyBytes) throw foreign(context);
      const key = createSecretKey(plaintext);
      plaintext.fill(0);
      return key;
    },
    close: () => undefined,
  };
}

function foreign({ tenant }: WrapContext): Error {
  const owner = tenant === '' ? 'the vault' : `tenant ${tenant}`;
  return integrityError(`the wrapped key of ${owner} is not authentic`);
}

function heldKeys(keys: readonly KeyObject[]): readonly HeldKey[] {
  return keys.map((key) => {
    const direct = rootKeys(key);
    const id = idText(direct.activeVersion);
    const bytes = key.export();
    const aead = new AeadKey(bytes);
    bytes.fill(0);
    return { key, id, aead, direct };
  });
}

function idText(id: number): string {
  return id.toString(16).padStart(8, '0');
}

/** No other text that a root key authenticates begins like this one: see `associatedDataOf` of the envelope. */
function associatedDataOf({ vault, tenant }: WrapContext, keyId: string): Buffer {
  return Buffer.from(JSON.stringify(['strongroom wrapped key', 1, vault, tenant, keyId]), 'utf8');
}
