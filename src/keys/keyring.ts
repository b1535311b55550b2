/** A tenant's keyring: versioned keys for each purpose, stored only when sealed. */
import assert from 'node:assert/strict';
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { inspect } from 'node:util';
import { type Instant, parseInstant } from '../base/clock.ts';
import { integrityError, type VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { isObject, type Json } from '../base/json.ts';
import type { Random } from '../base/random.ts';
import { AeadKey, aeadKeyBytes } from './aead.ts';
import { sha256 } from './digest.ts';
import {
  type Binding,
  keyVersionOf,
  type OpeningGrant,
  type OpeningKeys,
  openingKeys,
  openText,
  type Sealed,
  sealText,
  type VersionedKeys,
} from './envelope.ts';
import { signingKeyOf } from './signing.ts';

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

/**
 * `active` seals and opens, `decrypt_only` opens, `destroyed` keeps its number but has no key. A new version is
 * `decrypt_only` until all servers know it.
 */
const keyStates = ['active', 'decrypt_only', 'destroyed'] as const;
export type KeyState = (typeof keyStates)[number];

/** A key object prints and serializes as nothing; only its `export()` gives the bytes. */
export interface KeyVersion {
  readonly version: number;
  readonly state: KeyState;
  readonly key: KeyObject | undefined;
  /** Absent for the first version of a keyring that an earlier release made: it is as old as the tenant. */
  readonly createdAt?: Instant;
  /** Of a version that is destroyed. */
  readonly destroyedAt?: Instant;
  /**
   * Of fingerprint and search keys: the first version of the data key whose rows are under this version. Every write
   * of a row is sealed under the active data key and has digests under the active keys, so the version of the data key
   * that a row names tells the versions of its digests.
   */
  readonly fromData?: number;
  /**
   * Of fingerprint keys: servers may write under this version and under the one before. Until this ends, a value that
   * deduplication gives to a token is claimed under the one before.
   */
  readonly overlaps?: true;
  /**
   * Of data keys: the rotation that made this version, while rows under earlier versions are being sealed again. Rows
   * of rotations can be altered in the database, and this cannot.
   */
  readonly resealing?: ResealingPurpose;
  /** Of data keys: from then on no row was under an earlier version. */
  readonly resealedAt?: Instant;
  /**
   * Of webhook keys: the number of the key pair with which the vault signs deliveries. Absent for the pair that all
   * tenants share until they rotate it, which has the number 1.
   */
  readonly pair?: number;
  /** Of webhook keys that are not active any more: deliveries are signed with it as well until then. */
  readonly signsUntil?: Instant;
  /** Of audit keys: the number of the checkpoint in which the key before introduces this one. Absent for the first. */
  readonly introducedBy?: number;
  /** Of audit keys that are destroyed: base64 of the public key, for what they have signed. */
  readonly publicKey?: string;
}

/** What a new version of a key has besides its secret. */
export type NewVersion = Pick<KeyVersion, 'pair' | 'introducedBy'>;

/** Purposes whose digests are stored with rows that a data key seals. */
const digestPurposes = ['fingerprint', 'search'] as const;
export type DigestPurpose = (typeof digestPurposes)[number];

/** The purposes whose rotation seals all rows again, each under a new data key. */
export const resealingPurposes = ['data', ...digestPurposes] as const;
export type ResealingPurpose = (typeof resealingPurposes)[number];

type Versions = Readonly<Record<Purpose, readonly KeyVersion[]>>;

/** A keyring with version 1 of every purpose active. */
export function createKeyring(random: Random): Keyring {
  const first = (): KeyVersion[] => [{ version: 1, state: 'active', key: newKey(random) }];
  return new Keyring(byPurpose(first));
}

/** The keyring as it is stored: sealed for one tenant, under a key that the root key wraps. */
export function wrapKeyring(
  keys: VersionedKeys,
  tenant: TenantId,
  keyring: Keyring,
  random: Random,
): Sealed {
  return sealText(keys, keyringBinding(tenant), serialize(keyring), random);
}

/** A keyring as it is stored, and whose it is. */
export interface WrappedKeyring {
  readonly tenant: TenantId;
  readonly wrapped: Uint8Array;
}

/**
 * Opens a keyring that {@link wrapKeyring} made.
 * @throws VaultError `integrity` if it belongs to another tenant, was altered, or is under another key.
 */
export function openKeyring(
  keys: VersionedKeys,
  grant: OpeningGrant,
  { tenant, wrapped }: WrappedKeyring,
): Keyring {
  if (keyVersionOf(wrapped) !== keys.activeVersion) {
    throw unusable(tenant, 'is not sealed by this key');
  }
  const text = openText(openingKeys(keys, grant), keyringBinding(tenant), wrapped);
  return parseKeyring(tenant, text.reveal());
}

/** Immutable. Prints and serializes as nothing. */
export class Keyring {
  readonly versions: Versions;
  readonly #active: Readonly<Record<Purpose, number>>;
  readonly #sealing = new Map<SealingPurpose, VersionedKeys>();
  readonly #living = new Map<SecretPurpose, readonly KeyObject[]>();
  #successor: Keyring | undefined;
  #id: string | undefined;

  constructor(versions: Versions) {
    this.versions = versions;
    this.#active = byPurpose(
      (purpose) => versions[purpose].findIndex(({ state }) => state === 'active') + 1,
    );
  }

  /** The same for the same versions of keys, whichever key seals them. It reveals nothing, because keys are random. */
  get id(): string {
    this.#id ??= sha256(serialize(this)).toString('base64url');
    return this.#id;
  }

  /** The keys of a purpose as the envelope takes them, made ready once. */
  sealing(purpose: SealingPurpose): VersionedKeys {
    const known = this.#sealing.get(purpose);
    if (known !== undefined) return known;
    const own = sealingKeys(purpose, this.versions[purpose], this.activeVersion(purpose));
    const count = this.versions[purpose].length;
    const keys: VersionedKeys = {
      ...own,
      at: (version) =>
        version <= count ? own.at(version) : this.#successor?.sealing(purpose).at(version),
    };
    this.#sealing.set(purpose, keys);
    return keys;
  }

  /**
   * A request that began under this keyring, and takes longer than the announcement of a new key, opens with the keys
   * of its successor what others have written meanwhile.
   */
  succeededBy(successor: Keyring): void {
    if (successor !== this) this.#successor = successor;
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
    return this.#active[purpose];
  }

  /** The secrets of all versions that are not destroyed, the active one first: a digest may be under any of them. */
  livingSecrets(purpose: SecretPurpose): readonly KeyObject[] {
    const known = this.#living.get(purpose);
    if (known !== undefined) return known;
    const active = this.secret(purpose);
    const keys = this.versions[purpose].flatMap(({ key }) => key ?? []);
    const living = [active, ...keys.filter((key) => key !== active)];
    this.#living.set(purpose, living);
    return living;
  }

  /** The secret before the one that overlaps it; see {@link KeyVersion.overlaps}. */
  overlappedSecret(purpose: DigestPurpose): KeyObject | undefined {
    const overlapping = this.versions[purpose].findLast(({ overlaps }) => overlaps);
    return overlapping && this.secret(purpose, overlapping.version - 1);
  }

  /** The version of a digest key that a row is under whose data is sealed under this version of the data key. */
  digestVersion(purpose: DigestPurpose, dataVersion: number): number {
    const begun = this.versions[purpose].filter(({ fromData = 1 }) => fromData <= dataVersion);
    return begun.at(-1)?.version ?? 1;
  }

  /**
   * The keyring with one more version of a purpose, which is `decrypt_only`. A digest key begins with the newest
   * version of the data key, so add that before it.
   */
  withVersion(
    purpose: Purpose,
    { random, now, ...more }: NewVersion & { readonly random: Random; readonly now: Instant },
  ): Keyring {
    const versions = this.versions[purpose];
    const added: KeyVersion = {
      ...more,
      version: versions.length + 1,
      state: 'decrypt_only',
      key: newKey(random),
      createdAt: now,
      ...(isDigestPurpose(purpose) && { fromData: this.versions.data.length }),
      ...(purpose === 'fingerprint' && { overlaps: true as const }),
    };
    return this.#with(purpose, [...versions, added]);
  }

  /**
   * The keyring in which the newest version of a purpose is active.
   * @param signsUntil of a webhook key: for so long the version before signs deliveries as well.
   */
  withNewestActive(purpose: Purpose, signsUntil?: Instant): Keyring {
    const versions = this.versions[purpose];
    const newest = versions.length;
    const retired = {
      state: 'decrypt_only',
      ...(signsUntil !== undefined && { signsUntil }),
    } as const;
    return this.#with(
      purpose,
      versions.map((entry): KeyVersion => {
        if (entry.version === newest) return { ...entry, state: 'active' };
        return entry.state === 'active' ? { ...entry, ...retired } : entry;
      }),
    );
  }

  /** The rotation in which rows under earlier data keys are being sealed again. */
  get resealing(): ResealingPurpose | undefined {
    return this.versions.data.findLast(({ resealing }) => resealing)?.resealing;
  }

  /** The keyring in which the rows under the versions before the active data key are being sealed again. */
  withResealing(purpose: ResealingPurpose): Keyring {
    const active = this.activeVersion('data');
    return this.#withData(({ resealing: _before, ...entry }) =>
      entry.version === active ? { ...entry, resealing: purpose } : entry,
    );
  }

  /** The keyring once no row is under an earlier data key. */
  withResealed(resealedAt: Instant): Keyring {
    return this.#withData(({ resealing, ...entry }) =>
      resealing === undefined ? entry : { ...entry, resealedAt },
    );
  }

  #withData(change: (entry: KeyVersion) => KeyVersion): Keyring {
    return this.#with('data', this.versions.data.map(change));
  }

  /** The keyring with other numbers of the key pairs that its webhook keys name, by their version. */
  withPairs(pairs: ReadonlyMap<number, number>): Keyring {
    return this.#with(
      'webhook',
      this.versions.webhook.map((entry) => {
        const pair = pairs.get(entry.version);
        return pair === undefined ? entry : { ...entry, pair };
      }),
    );
  }

  /** The webhook keys that sign deliveries: the one before the active one first, as long as it signs as well. */
  signingVersions(now: Instant): readonly KeyVersion[] {
    return this.versions.webhook.filter(
      ({ state, signsUntil }) =>
        state === 'active' ||
        (state === 'decrypt_only' && signsUntil !== undefined && now < signsUntil),
    );
  }

  /** The keyring once no server writes under an earlier fingerprint key than the active one any more. */
  withoutOverlap(): Keyring {
    return this.#with(
      'fingerprint',
      this.versions.fingerprint.map(({ overlaps: _ended, ...entry }) => entry),
    );
  }

  /** The keyring without the key of this version, which must not be active and under which there must be no rows. */
  withDestroyed(purpose: Purpose, version: number, destroyedAt: Instant): Keyring {
    assert(version !== this.activeVersion(purpose), 'the active version is never destroyed');
    return this.#with(
      purpose,
      this.versions[purpose].map((entry): KeyVersion => {
        if (entry.version !== version) return entry;
        // What it has signed is verified for as long as the log has it.
        const kept =
          purpose === 'audit' && entry.key ? { publicKey: signingKeyOf(entry.key).publicKey } : {};
        return { ...entry, ...kept, state: 'destroyed', key: undefined, destroyedAt };
      }),
    );
  }

  #with(purpose: Purpose, versions: readonly KeyVersion[]): Keyring {
    return new Keyring({ ...this.versions, [purpose]: versions });
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

function sealingKeys(
  purpose: SealingPurpose,
  versions: readonly KeyVersion[],
  activeVersion: number,
): VersionedKeys {
  const keys = versions.map((entry) => entry.key && aeadKeyOf(entry.key));
  return { purpose, activeVersion, at: (version) => keys[version - 1] };
}

function isDigestPurpose(purpose: Purpose): purpose is DigestPurpose {
  return digestPurposes.some((known) => known === purpose);
}

/**
 * A root key, or a key that one wraps, as the envelope's keys. Its version is the start of a digest keyed by itself, so
 * that a foreign key can be distinguished from damage, and two keys from each other while one replaces the other.
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

/** The place of a stored keyring. */
export function keyringBinding(tenant: TenantId): Binding {
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

function byPurpose<T>(of: (purpose: Purpose) => T): Readonly<Record<Purpose, T>> {
  return Object.fromEntries(purposes.map((purpose) => [purpose, of(purpose)])) as Record<
    Purpose,
    T
  >;
}

/**
 * `{ purpose: [{ state, key?, created_at?, destroyed_at?, from_data?, overlaps?, resealing?, resealed_at?, pair?,
 * signs_until?, introduced_by?, public_key? }] }`; a version is its place in the list, counted from 1.
 */
function serialize(keyring: Keyring): string {
  const entryOf = (version: KeyVersion): Json => {
    const { state, key, createdAt, destroyedAt, fromData, overlaps } = version;
    const { resealing, resealedAt, pair, signsUntil, introducedBy, publicKey } = version;
    return {
      state,
      ...(key !== undefined && { key: key.export().toString('base64') }),
      ...(createdAt !== undefined && { created_at: createdAt }),
      ...(destroyedAt !== undefined && { destroyed_at: destroyedAt }),
      ...(fromData !== undefined && { from_data: fromData }),
      ...(overlaps && { overlaps }),
      ...(resealing !== undefined && { resealing }),
      ...(resealedAt !== undefined && { resealed_at: resealedAt }),
      ...(pair !== undefined && { pair }),
      ...(signsUntil !== undefined && { signs_until: signsUntil }),
      ...(introducedBy !== undefined && { introduced_by: introducedBy }),
      ...(publicKey !== undefined && { public_key: publicKey }),
    };
  };
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
      const active = entries.filter((entry) => entry?.state === 'active');
      if (active.length !== 1 || entries.includes(undefined)) {
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
  const { created_at: createdAt, destroyed_at: destroyedAt, from_data: fromData, overlaps } = entry;
  const resealing = resealingPurposes.find((known) => known === entry['resealing']);
  const {
    resealed_at: resealedAt,
    pair,
    signs_until: signsUntil,
    introduced_by: introducedBy,
    public_key: publicKey,
  } = entry;
  const known = {
    version: index + 1,
    state,
    ...(typeof createdAt === 'number' && { createdAt: parseInstant(createdAt) }),
    ...(typeof destroyedAt === 'number' && { destroyedAt: parseInstant(destroyedAt) }),
    ...(typeof fromData === 'number' && { fromData }),
    ...(overlaps === true && { overlaps }),
    ...(resealing !== undefined && { resealing }),
    ...(typeof resealedAt === 'number' && { resealedAt: parseInstant(resealedAt) }),
    ...(typeof pair === 'number' && { pair }),
    ...(typeof signsUntil === 'number' && { signsUntil: parseInstant(signsUntil) }),
    ...(typeof introducedBy === 'number' && { introducedBy }),
    ...(typeof publicKey === 'string' && { publicKey }),
  };
  if (state === 'destroyed') return { ...known, key: undefined };
  const bytes = Buffer.from(String(entry['key']), 'base64');
  return bytes.length === aeadKeyBytes ? { ...known, key: createSecretKey(bytes) } : undefined;
}

function unusable(tenant: TenantId, reason: string): VaultError {
  return integrityError(`the keyring of tenant ${tenant} ${reason}`);
}
