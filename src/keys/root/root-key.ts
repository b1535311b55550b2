/** The root key of a vault, wherever it is: it wraps the key-encryption keys of tenants, and nothing else. */
import { createSecretKey, type KeyObject } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { aeadKeyBytes } from '../aead.ts';

/**
 * A root key. It is used when the vault starts, when a tenant is created, during a rotation, and when a tenant is
 * first needed: never by a request whose tenant has its keys in memory.
 *
 * Each call ends within a time that the source bounds, also when a remote service does not respond. The source makes
 * no repeated attempts of its own: its caller decides when to try again.
 */
export interface RootKey {
  /** The name of its row in `sources.ts`, which stays with all that it wraps. */
  readonly source: string;
  /** Where it is, for the operator's messages, such as `file /etc/strongroom/root.key`. Never content. */
  readonly origin: string;
  /** The key did not exist before this start. The operator has to back it up. */
  readonly created?: boolean;
  /**
   * The key that wraps from now on. Of a remote service this is a call, which shows that the service can be reached
   * and lets this vault in.
   * @throws VaultError as {@link wrap} does.
   */
  current(): Promise<RootKeyId>;
  /**
   * Wraps a key of 32 bytes. The context is authenticated with it: with another one the result does not open.
   * @throws VaultError `unavailable` when the source cannot be reached, denies access or throttles. Its internal text
   * says which of them, for the operator, and contains no token, key or response body.
   */
  wrap(key: WrappingKey, context: WrapContext): Promise<WrappedKey>;
  /**
   * Unwraps what {@link wrap} returned for the same context, also under an earlier version of the key.
   * @throws VaultError `unavailable` as {@link wrap} does. `integrity` when the blob was altered, is for another
   * context, or is of a key that the source does not have.
   */
  unwrap(wrapped: WrappedKey, context: WrapContext): Promise<WrappingKey>;
  /** Ends what runs in the background, such as the renewal of a token. Calls after it may fail. */
  close(): void;
}

/** A key-encryption key: 32 bytes that the root key wraps. It prints and serializes as nothing. */
export type WrappingKey = KeyObject;

export function newWrappingKey(random: Random): WrappingKey {
  const bytes = random(aeadKeyBytes);
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return key;
}

/** The key of base64 that a process of this vault sent. */
export function wrappingKeyOf(base64: string): WrappingKey {
  return createSecretKey(base64, 'base64');
}

/** Names a root key and says nothing about its bytes. */
export interface RootKeyId {
  /** At most 512 characters of ASCII: an ARN, the path of a key, or the start of a digest. */
  readonly keyId: string;
  /** From 1. Always 1 where the source does not count versions. */
  readonly version: number;
}

/** What a key belongs to. A source gives both to its cipher as associated data, for example as a KMS's context. */
export interface WrapContext {
  /** The id of the vault. */
  readonly vault: string;
  /** The id of the tenant; empty for the vault's own key. */
  readonly tenant: string;
}

/** A wrapped key, as it is stored next to what it seals. */
export interface WrappedKey extends RootKeyId {
  readonly source: string;
  /** What the source needs to unwrap it, at most 4 KiB. */
  readonly blob: Uint8Array;
}

/** A row of the table of sources: how a root key is found. */
export interface RootKeySource {
  /** The value of STRONGROOM_ROOT_KEY_SOURCE. */
  readonly name: string;
  /** The names of its variables, without `STRONGROOM_`. */
  readonly variables: readonly string[];
  /**
   * Whether the operator set the variables that it needs. It is then used for what is wrapped by it, next to another
   * source that is chosen.
   */
  isConfigured(read: ReadRootKeyVariable, sharedKeys: SharedKeys | undefined): boolean;
  /** @throws RootKeyError when it cannot be used at all; nothing has changed then. */
  open(settings: RootKeySettings): Promise<RootKey>;
  /** Absent where only the operator can make a new key, or where the service counts versions of its own. */
  readonly renewal?: RootKeyRenewal;
}

/** Making a new key next to the present one. Every step can be repeated, because a crash may come at any moment. */
export interface RootKeyRenewal {
  /**
   * Afterwards another key wraps than the one in use, which still unwraps. Without effect where that is so already.
   * @param inUse the id of the key that wraps the keys in the database.
   * @throws RootKeyError when the new key cannot be stored; nothing has changed then.
   */
  begin(settings: RootKeySettings, inUse: string): Promise<void>;
  /**
   * Nothing is wrapped by the key before any more: it is removed.
   * @param inUse the id of the key that wraps the keys in the database now.
   */
  end(settings: RootKeySettings, inUse: string): Promise<void>;
}

/** The text of a variable, by its name without `STRONGROOM_`; `undefined` where it is absent or empty. */
export type ReadRootKeyVariable = (name: string) => string | undefined;

export interface RootKeySettings {
  readonly read: ReadRootKeyVariable;
  /** Where the source `file` has the key, by its variable or by default. */
  readonly file: string;
  /** True only over an empty store: a new root key cannot open what others have sealed. */
  readonly createIfMissing: boolean;
  /** The variables of the process that are not the vault's, for programs and libraries that need them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly random: Random;
  /** Keys of the source `shamir`. */
  readonly sharedKeys?: SharedKeys | undefined;
}

/**
 * Keys of which people hold shares. Their bytes are in the memory of a server that was given enough shares, and
 * nowhere else; commands reach them through that server.
 */
export interface SharedKeys {
  /**
   * The key of that id, for as long as it can be used.
   * @throws RootKeyError when no server that has it can be reached.
   */
  find(keyId: string): Promise<RootKey | undefined>;
  /** The one that was given last. @throws RootKeyError as {@link find} does. */
  newest(): Promise<RootKey | undefined>;
  /**
   * Makes a new key, once, and gives its shares away. Absent where there is no one to take them.
   * @throws RootKeyError when they could not be given away; nothing has changed then.
   */
  renew?(): Promise<void>;
}

/** The configuration of a root key cannot be used. The message names the cause and the source, never content. */
export class RootKeyError extends Error {
  override readonly name = 'RootKeyError';
}
