/** Opening values that a browser or an app encrypted with a key of the tenant. */

import { isUtf8 } from 'node:buffer';
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { invalid, type VaultError } from '../../base/errors.ts';
import { ExpiringMap } from '../../base/expiring-map.ts';
import { type ClientKeyId, parseUuid } from '../../base/ids.ts';
import { exceededLimit, type Json } from '../../base/json.ts';
import { Secret } from '../../base/secret.ts';
import { type ClientKey, keyIdOfJwe, openJwe } from '../../keys/client-key.ts';
import { sha256 } from '../../keys/digest.ts';
import type { OpeningGrant } from '../../keys/envelope.ts';
import { membersForm } from '../../rules/members.ts';
import { openerOf } from '../../rules/openings.ts';
import { proven, requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { findClientKey, openClientKey } from './row.ts';

/** An RSA decryption takes a millisecond, so a value that is too long to be used is refused before it. */
const jweLengthMax = 1_000_000;

/** A UUID has 36; the id of a JWE needs no more than a URL. */
const jtiLengthMax = 256;

/** An encrypted value, and its name in errors. */
export interface EncryptedValue {
  readonly jwe: string;
  readonly path: string;
}

export interface OpenedValue {
  readonly key: ClientKeyId;
  readonly data: Secret<Json>;
  /** Inserted together with the result, if the value may be used only once. */
  readonly use: Row<'client_key_uses'> | undefined;
}

/**
 * The JSON in a JWE.
 * @throws VaultError `validation_failed` naming the path for a JWE that has none of the algorithms, names no valid
 * key of the tenant, does not hold JSON or holds too many members, has expired, or has been used;
 * `integrity` when the key, or the row of an earlier use, was altered.
 */
export type OpenEncrypted = (opener: TenantOpener, value: EncryptedValue) => Promise<OpenedValue>;

/** The tenant for which a value is opened, and whose key may open it. */
export interface TenantOpener {
  readonly tenant: Tenant;
  readonly grant: OpeningGrant;
  /** How many members the opened value may have. */
  readonly membersMax: number;
}

export interface EncryptedReading {
  readonly store: Store;
  readonly clock: Clock;
}

interface OpenedKey {
  readonly id: ClientKeyId;
  readonly key: ClientKey;
  readonly expiresAt: Instant;
}

/** A key that another server deleted is used for at most a second: half of it is reserved for the read itself. */
const staleMsMax = second / 2;
const keysCached = 1_000;

/**
 * The id of the key that a JWE names, for the log; `undefined` for anything that is not an id,
 * because it may be a value in the wrong place.
 */
export function keyNamedBy(jwe: string): ClientKeyId | undefined {
  const kid = jwe.length > jweLengthMax ? undefined : keyIdOfJwe(jwe);
  return kid === undefined ? undefined : parseUuid<ClientKeyId>(kid);
}

export function createOpenEncrypted({ store, clock }: EncryptedReading): OpenEncrypted {
  const recent = new ExpiringMap<string, OpenedKey>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: keysCached,
    epoch: () => store.epochs.now('client_keys'),
  });

  async function keyOf(tenant: Tenant, id: ClientKeyId): Promise<OpenedKey | undefined> {
    const name = `${tenant.id} ${id}`;
    const known = recent.get(name);
    if (known) return known.expiresAt > clock.now() ? known : undefined;
    const reading = recent.reading();
    const row = await findClientKey(store, tenant, { id, now: clock.now() });
    if (row === undefined) return undefined;
    const opened = {
      id,
      key: openClientKey(openerOf('load encryption keys', tenant), row),
      expiresAt: row.expires_at,
    };
    recent.set(name, opened, reading);
    return opened;
  }

  /**
   * The row that records the use of a JWE with a `jti`. Throws if the JWE was used before.
   * @throws VaultError `integrity` if the row of an earlier use was not written by the vault.
   */
  async function useOf(tenant: Tenant, key: ClientKeyId, jti: string, path: string) {
    const jti_digest = sha256(jti).toString('base64url');
    const named = { tenant_id: tenant.id, client_key_id: key, jti_digest };
    const earlier = await store.get('client_key_uses', named);
    if (earlier) {
      requireProven(tenant, 'client_key_uses', earlier);
      throw usedTwice(path);
    }
    const use_id = sha256(`${key} ${jti_digest}`).toString('base64url');
    return proven(tenant, 'client_key_uses', { ...named, used_at: clock.now(), use_id });
  }

  return async ({ tenant, grant, membersMax }, { jwe, path }) => {
    const id = keyNamedBy(jwe);
    if (id === undefined) {
      const algorithms = 'ECDH-ES or RSA-OAEP-256 and A256GCM';
      throw invalid(path, `must be a compact JWE by ${algorithms} that names its key`);
    }
    const key = await keyOf(tenant, id);
    const opened = key && (await openJwe(jwe, key, grant));
    if (opened === undefined) throw invalid(path, 'must be encrypted for a key of the tenant');
    requireUnexpired(opened.exp, clock.now(), path);
    const jti = jtiOf(opened.jti, path);
    const use = jti === undefined ? undefined : await useOf(tenant, id, jti, path);
    return { key: id, data: new Secret(jsonOf(opened.plaintext, { path, membersMax })), use };
  };
}

/** A value that was encrypted with a `jti` is opened once while its key lives. */
export function usedTwice(path: string): VaultError {
  return invalid(path, 'must not have been used before: it has a jti');
}

/** A NumericDate of RFC 7519: seconds, with or without a fraction. */
function requireUnexpired(exp: unknown, now: Instant, path: string): void {
  if (exp === undefined) return;
  if (typeof exp !== 'number') throw invalid(path, 'must have a number of seconds as exp');
  if (exp * second <= now) throw invalid(path, 'must not be over: its exp has passed');
}

function jtiOf(jti: unknown, path: string): string | undefined {
  if (jti === undefined) return undefined;
  if (typeof jti === 'string' && jti !== '' && jti.length <= jtiLengthMax) return jti;
  throw invalid(path, `must have 1 to ${jtiLengthMax} characters as jti`);
}

interface ExpectedJson {
  readonly path: string;
  readonly membersMax: number;
}

/** Members are counted before parsing, as in bodies. */
function jsonOf(bytes: Buffer, { path, membersMax }: ExpectedJson): Json {
  const limits = { levelsMax: Number.POSITIVE_INFINITY, membersMax };
  if (exceededLimit(bytes, limits)) throw invalid(path, membersForm(membersMax));
  try {
    if (isUtf8(bytes)) return JSON.parse(bytes.toString('utf8')) as Json;
  } catch {
    // The message of JSON.parse quotes the value.
  }
  throw invalid(path, 'must hold JSON when it is opened');
}
