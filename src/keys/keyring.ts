/** A tenant's keyring: versioned keys for each purpose, stored only when sealed by the root key. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import { integrityError, type VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { isObject, type Json } from '../base/json.ts';
import type { Random } from '../base/random.ts';
import { AeadKey, aeadKeyBytes } from './aead.ts';
import {
  type Binding,
  keyVersionOf,
  type OpeningGrant,
  type OpeningKeys,
  openingKeys,
  openText,
  requireAuthentic,
  type Sealed,
  sealText,
  type VersionedKeys,
} from './envelope.ts';

/** Purposes whose keys seal: token data, and the stored responses of idempotent requests. */
export const sealingPurposes = ['data', 'reply'] as const;
/** Purposes whose keys are the secret of an HMAC or the seed of a signature. */
export const secretPurposes = [
  'fingerprint',
  'search',
  'row',
  'audit',
  'cursor',
  'webhook',
] as const;
export const purposes = [...sealingPurposes, ...secretPurposes] as const;

export type SealingPurpose = (typeof sealingPurposes)[number];
export type SecretPurpose = (typeof secretPurposes)[number];
export type Purpose = (typeof purposes)[number];

/** `active` seals and opens, `decrypt_only` opens, `destroyed` keeps its number but has no key. */
const keyStates = ['active', 'decrypt_only', 'destroyed'] as const;
export type KeyState = (typeof keyStates)[number];

/** A key object prints and serializes as nothing; only its `export()` gives the bytes. */
export interface KeyVersion {
  readonly version: number;
  readonly state: KeyState;
  readonly key: KeyObject | undefined;
}

type Versions = Readonly<Record<Purpose, readonly KeyVersion[]>>;

/** A keyring with version 1 of every purpose active. */
export function createKeyring(random: Random): Keyring {
  const first = (): KeyVersion[] => [{ version: 1, state: 'active', key: newKey(random) }];
  return new Keyring(byPurpose(first));
}

/** The keyring as it is stored: sealed by the root key, for one tenant. */
export function wrapKeyring(
  root: KeyObject,
  tenant: TenantId,
  keyring: Keyring,
  random: Random,
): Sealed {
  return sealText(rootKeys(root), bindingOf(tenant), serialize(keyring), random);
}

/** A keyring as it is stored, and whose it is. */
export interface WrappedKeyring {
  readonly tenant: TenantId;
  readonly wrapped: Uint8Array;
}

/**
 * Opens a keyring that {@link wrapKeyring} made.
 * @throws VaultError `integrity` if it belongs to another tenant, was altered, or is under another root key.
 */
export function openKeyring(
  root: KeyObject,
  grant: OpeningGrant,
  { tenant, wrapped }: WrappedKeyring,
): Keyring {
  const keys = rootKeysFor(root, tenant, wrapped);
  const text = openText(openingKeys(keys, grant), bindingOf(tenant), wrapped);
  return parseKeyring(tenant, text.reveal());
}

/** @throws VaultError `integrity` like {@link openKeyring}, unless a later release wrote it. */
export function requireKeyring(root: KeyObject, { tenant, wrapped }: WrappedKeyring): void {
  requireAuthentic(rootKeysFor(root, tenant, wrapped), bindingOf(tenant), wrapped);
}

function rootKeysFor(root: KeyObject, tenant: TenantId, wrapped: Uint8Array): VersionedKeys {
  const keys = rootKeys(root);
  if (keyVersionOf(wrapped) === keys.activeVersion) return keys;
  throw unusable(tenant, 'is not sealed by this root key');
}

/** Immutable. Prints and serializes as nothing. */
export class Keyring {
  readonly versions: Versions;
  readonly #sealing = new Map<SealingPurpose, VersionedKeys>();

  constructor(versions: Versions) {
    this.versions = versions;
  }

  /** The keys of a purpose as the envelope takes them, made ready once. */
  sealing(purpose: SealingPurpose): VersionedKeys {
    const known = this.#sealing.get(purpose);
    if (known !== undefined) return known;
    const keys = sealingKeys(purpose, this.versions[purpose]);
    this.#sealing.set(purpose, keys);
    return keys;
  }

  /** The same keys, to open with. */
  opening(purpose: SealingPurpose, grant: OpeningGrant): OpeningKeys {
    return openingKeys(this.sealing(purpose), grant);
  }

  /** The secret of a purpose: the active one, or the one of a version that is not destroyed. */
  secret(purpose: SecretPurpose): KeyObject;
  secret(purpose: SecretPurpose, version: number): KeyObject | undefined;
  secret(purpose: SecretPurpose, version = this.activeVersion(purpose)): KeyObject | undefined {
    return this.versions[purpose][version - 1]?.key;
  }

  activeVersion(purpose: Purpose): number {
    return this.versions[purpose].length;
  }

  toString(): string {
    return '[keyring]';
  }

  toJSON(): string {
    return '[keyring]';
  }

  [inspect.custom](): string {
    return '[keyring]';
  }
}

function sealingKeys(purpose: SealingPurpose, versions: readonly KeyVersion[]): VersionedKeys {
  const keys = versions.map((entry) => entry.key && aeadKeyOf(entry.key));
  return { purpose, activeVersion: versions.length, at: (version) => keys[version - 1] };
}

/**
 * The root key as the envelope's keys. Its version is the start of a digest keyed by itself, so that
 * a foreign root key can be distinguished from damage, and two root keys from each other while one replaces the
 * other.
 */
export function rootKeys(root: KeyObject): VersionedKeys {
  const id = createHmac('sha256', root).update('strongroom root key id').digest().readUInt32BE(0);
  const key = aeadKeyOf(root);
  return {
    purpose: 'keyring',
    activeVersion: id,
    at: (version) => (version === id ? key : undefined),
  };
}

function bindingOf(tenant: TenantId): Binding {
  return { tenant, id: tenant, field: 'keyring' };
}

function aeadKeyOf(key: KeyObject): AeadKey {
  const bytes = key.export();
  const ready = new AeadKey(bytes);
  bytes.fill(0);
  return ready;
}

function newKey(random: Random): KeyObject {
  return createSecretKey(random(aeadKeyBytes));
}

function byPurpose(versions: (purpose: Purpose) => readonly KeyVersion[]): Versions {
  return Object.fromEntries(purposes.map((purpose) => [purpose, versions(purpose)])) as Versions;
}

/** `{ purpose: [{ state, key? }] }`; a version is its place in the list, counted from 1. */
function serialize(keyring: Keyring): string {
  const entryOf = ({ state, key }: KeyVersion): Json =>
    key === undefined ? { state } : { state, key: key.export().toString('base64') };
  return JSON.stringify(
    Object.fromEntries(
      purposes.map((purpose) => [purpose, keyring.versions[purpose].map(entryOf)]),
    ),
  );
}

/** Parses {@link serialize}. An unknown purpose is an error: writing the keyring back would lose its key. */
function parseKeyring(tenant: TenantId, text: string): Keyring {
  const stored: unknown = JSON.parse(text);
  if (!isObject(stored) || Object.keys(stored).sort().join() !== [...purposes].sort().join()) {
    throw unusable(tenant, 'has other purposes than this release knows');
  }
  return new Keyring(
    byPurpose((purpose) => {
      const list = stored[purpose];
      const entries = Array.isArray(list) ? list.map(parseVersion) : [];
      const states = entries.map((entry) => entry?.state);
      const lastIsActive = states.length > 0 && states.indexOf('active') === states.length - 1;
      if (!lastIsActive || entries.includes(undefined)) {
        throw unusable(tenant, `has ${purpose} keys this release cannot read`);
      }
      return entries as KeyVersion[];
    }),
  );
}

function parseVersion(entry: Json, index: number): KeyVersion | undefined {
  if (!isObject(entry)) return undefined;
  const state = keyStates.find((known) => known === entry['state']);
  if (state === undefined) return undefined;
  const version = index + 1;
  if (state === 'destroyed') return { version, state, key: undefined };
  const bytes = Buffer.from(String(entry['key']), 'base64');
  return bytes.length === aeadKeyBytes
    ? { version, state, key: createSecretKey(bytes) }
    : undefined;
}

function unusable(tenant: TenantId, reason: string): VaultError {
  return integrityError(`the keyring of tenant ${tenant} ${reason}`);
}
