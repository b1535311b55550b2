/** Opening what a browser or an app encrypted with a key of the tenant. */
import { isUtf8 } from 'node:buffer';
import { type ClientKey, keyIdOfJwe, openJwe } from '../../crypto/client-key.ts';
import { type Clock, type Instant, second } from '../../lib/clock.ts';
import { invalid, type VaultError } from '../../lib/errors.ts';
import { ExpiringMap } from '../../lib/expiring-map.ts';
import type { Json } from '../../lib/json.ts';
import { Secret } from '../../lib/secret.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import { findClientKey, openClientKey } from './row.ts';

/** An RSA decryption takes a millisecond, so nobody may ask for it with more than can be used. */
const jweLengthMax = 1_000_000;

/**
 * The JSON in a JWE.
 * @param path how errors call it.
 * @throws VaultError `validation_failed` when it is not a JWE by RSA-OAEP-256 and A256GCM for a key of the
 * tenant that is still valid, or does not hold JSON; `integrity` when the key was altered.
 */
export type OpenEncrypted = (tenant: Tenant, jwe: string, path: string) => Promise<Secret<Json>>;

export interface EncryptedReading {
  readonly store: Store;
  readonly clock: Clock;
}

interface OpenedKey {
  readonly key: ClientKey;
  readonly expiresAt: Instant;
}

/** What another server deleted is not used for longer than a second: half of it is for the reading itself. */
const staleMsMax = second / 2;
const keysCached = 1_000;

export function createOpenEncrypted({ store, clock }: EncryptedReading): OpenEncrypted {
  const recent = new ExpiringMap<string, OpenedKey>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: keysCached,
    epoch: () => store.epochs.now('client_keys'),
  });

  async function keyOf(tenant: Tenant, id: string): Promise<ClientKey | undefined> {
    const name = `${tenant.id} ${id}`;
    const known = recent.get(name);
    if (known) return known.expiresAt > clock.now() ? known.key : undefined;
    const reading = recent.reading();
    const row = await findClientKey(store, tenant, { id, now: clock.now() });
    if (row === undefined) return undefined;
    const key = openClientKey(tenant, row);
    recent.set(name, { key, expiresAt: row.expires_at }, reading);
    return key;
  }

  return async (tenant, jwe, path) => {
    const id = jwe.length > jweLengthMax ? undefined : keyIdOfJwe(jwe);
    if (id === undefined) {
      throw invalid(path, 'must be a compact JWE by RSA-OAEP-256 and A256GCM that names its key');
    }
    const key = await keyOf(tenant, id);
    const plaintext = key && (await openJwe(jwe, key));
    if (plaintext === undefined) throw invalid(path, 'must be encrypted for a key of the tenant');
    return new Secret(jsonOf(plaintext, () => invalid(path, 'must hold JSON when it is opened')));
  };
}

function jsonOf(bytes: Buffer, problem: () => VaultError): Json {
  try {
    if (isUtf8(bytes)) return JSON.parse(bytes.toString('utf8')) as Json;
  } catch {
    // What JSON.parse says quotes the text.
  }
  throw problem();
}
