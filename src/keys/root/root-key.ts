/** The root key of a vault, wherever it is: it wraps the key-encryption keys of tenants, and nothing else. */
import type { KeyObject } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';

/**
 * A root key. It is used when the vault starts, when a tenant is created, during a rotation, and when a tenant is
 * first needed: never by a request whose tenant has its keys in memory.
 *
 * Each call ends within a time that the source bounds, also when a remote service does not respond. The source makes
 * no repeated attempts of its own: `key-cache.ts` decides when to try again.
 */
export interface RootKey {
  /** The name of its row in `sources.ts`, which stays with all that it wraps. */
  readonly source: string;
  /** Where it is, for the operator's messages, such as `file /etc/strongroom/root.key`. Never content. */
  readonly origin: string;
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
  wrap(key: KeyObject, context: WrapContext): Promise<WrappedKey>;
  /**
   * Unwraps what {@link wrap} returned for the same context, also under an earlier version of the key.
   * @throws VaultError `unavailable` as {@link wrap} does. `integrity` when the blob was altered, is for another
   * context, or is of a key that the source does not have.
   */
  unwrap(wrapped: WrappedKey, context: WrapContext): Promise<KeyObject>;
  /** Ends what runs in the background, such as the renewal of a token. Calls after it may fail. */
  close(): void;
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
  /** Whether the variables that it needs are set. It is then used for what is wrapped by it, next to another source. */
  isConfigured(read: ReadRootKeyVariable): boolean;
  /** @throws RootKeyError when it cannot be used at all; nothing has changed then. */
  open(settings: RootKeySettings): Promise<RootKey>;
}

/** The text of a variable, by its name without `STRONGROOM_`; `undefined` where it is absent or empty. */
export type ReadRootKeyVariable = (name: string) => string | undefined;

export interface RootKeySettings {
  readonly read: ReadRootKeyVariable;
  /** True only over an empty store: a new root key cannot open what others have sealed. */
  readonly createIfMissing: boolean;
  readonly clock: Clock;
  readonly random: Random;
}

/** The configuration of a root key cannot be used. The message names the cause and the source, never content. */
export class RootKeyError extends Error {
  override readonly name = 'RootKeyError';
}
