/** Keys by which browsers and apps encrypt data that passes through others on its way to the vault. */
import { type ClientKeyAlgorithm, newClientKeyPair } from '../../crypto/client-key.ts';
import { type Clock, day, type Instant, instantAfter } from '../../lib/clock.ts';
import { parseExpiry } from '../../lib/dates.ts';
import { invalid, VaultError } from '../../lib/errors.ts';
import { type ClientKeyId, newUuid } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { requireProven } from '../../rules/proven-row.ts';
import { liveClientKeys } from '../../store/queries/client-keys.ts';
import type { Store } from '../../store/store.ts';
import { clientKeyOf, clientKeyRow, viewClientKey } from './row.ts';

const lifetimeMsDefault = 182 * day;
const lifetimeMsMax = 366 * day;
const clientKeysMax = 50;

export interface ClientKeyReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface ClientKeyWriting extends ClientKeyReading {
  readonly random: Random;
}

export interface ClientKeyRequest {
  readonly expires_at?: string | null;
  /** Without it, the one of the public clients. */
  readonly algorithm?: ClientKeyAlgorithm | null;
}

const algorithmDefault = 'ECDH-ES';

/**
 * From the decision `unprocessable` where the tenant has all the keys that it may have. The response is
 * the only one with the public key.
 * @throws VaultError `validation_failed` for an expiry that is not a time within a year.
 */
export function createClientKey(
  { store, clock, random }: ClientKeyWriting,
  caller: Caller,
  request: ClientKeyRequest,
): Decide {
  const expires_at = readExpiry(request.expires_at ?? null, clock.now());
  const { tenant, application: by } = caller;
  return async () => {
    const now = clock.now();
    const keys = await store.select(liveClientKeys(tenant.id, now));
    if (keys.length >= clientKeysMax) {
      throw new VaultError('unprocessable', {
        public: `A tenant has at most ${clientKeysMax} encryption keys; delete one first.`,
      });
    }
    const algorithm = request.algorithm ?? algorithmDefault;
    const { publicKey, privateKey } = await newClientKeyPair(algorithm);
    const id = newUuid<ClientKeyId>(random);
    const row = clientKeyRow(
      { tenant, privateKey, random },
      {
        tenant_id: tenant.id,
        client_key_id: id,
        version: 1,
        created_by: by,
        created_at: now,
        expires_at,
      },
    );
    return {
      change: {
        insert: { client_keys: [row] },
        entries: [entryOf(caller, now, { entity: 'key', id, operation: 'create' })],
      },
      reply: { status: 201, location: `/keys/${id}`, body: viewClientKey(row, publicKey) },
    };
  };
}

function readExpiry(text: string | null, now: Instant): Instant {
  if (text === null) return instantAfter(now, lifetimeMsDefault);
  const at = parseExpiry(text)?.at;
  if (at !== undefined && at > now && at <= now + lifetimeMsMax) return at;
  throw invalid('expires_at', 'must be a date-time in the future and within a year');
}

/** From the decision `integrity` when a key was altered. */
export function listClientKeys({ store, clock }: ClientKeyReading, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const rows = await store.select(liveClientKeys(tenant.id, now));
    return {
      change: {
        entries: [entryOf(caller, now, { entity: 'key', id: tenant.id, operation: 'list' })],
      },
      reply: {
        status: 200,
        body: rows.map((row) => viewClientKey(requireProven(tenant, 'client_keys', row))),
      },
    };
  };
}

/** From the decision `not_found`, or `integrity` when the key was altered. */
export function readOneClientKey(
  { store, clock }: ClientKeyReading,
  caller: Caller,
  id: string,
): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const row = requireProven(tenant, 'client_keys', await clientKeyOf(store, tenant, { id, now }));
    const fact = { entity: 'key', id: row.client_key_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: viewClientKey(row) },
    };
  };
}

/** From the decision `not_found`. What was encrypted for the key cannot be read from then on. */
export function deleteClientKey(
  { store, clock }: ClientKeyReading,
  caller: Caller,
  id: string,
): Decide {
  return async () => {
    const now = clock.now();
    const row = await clientKeyOf(store, caller.tenant, { id, now });
    const { tenant_id, client_key_id, version } = row;
    const fact = { entity: 'key', id: client_key_id, operation: 'delete' } as const;
    return {
      change: {
        remove: { client_keys: [{ tenant_id, client_key_id, version }] },
        entries: [entryOf(caller, now, fact)],
      },
      reply: { status: 204 },
    };
  };
}
