/** Keys with which browsers and apps encrypt data that passes through other hosts on its way to the vault. */

import { type Clock, day, type Instant, instantAfter } from '../../base/clock.ts';
import { formatTimestamp, parseExpiry } from '../../base/dates.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { type ClientKeyId, newUuid } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type ClientKeyAlgorithm, newClientKeyPair } from '../../keys/client-key.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Decide } from '../../rules/operation.ts';
import { type CreatedResource, type ListTools, listed } from '../../rules/stored-resource.ts';
import { liveClientKeys } from '../../store/queries/client-keys.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { clientKeyRow } from './row.ts';

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

interface ClientKeySettings {
  readonly expires_at: Instant;
  readonly algorithm: ClientKeyAlgorithm;
}

type ClientKeyResource = CreatedResource<'client_keys', ClientKeyRequest, ClientKeySettings>;

/** A key that has expired is not found. Only the response to its creation has the public half. */
export function clientKeyResource({ store, clock, random }: ClientKeyWriting): ClientKeyResource {
  return {
    store,
    clock,
    table: 'client_keys',
    path: '/keys',
    expiryOf: ({ expires_at }) => expires_at,
    show: (_caller, row) => viewClientKey(row),
    parse: ({ expires_at = null, algorithm }) => ({
      expires_at: readExpiry(expires_at, clock.now()),
      algorithm: algorithm ?? algorithmDefault,
    }),

    async requireRoom({ id }) {
      const keys = await store.select(liveClientKeys(id, clock.now()));
      if (keys.length < clientKeysMax) return;
      throw new VaultError('unprocessable', {
        public: `A tenant has at most ${clientKeysMax} encryption keys; delete one first.`,
      });
    },

    async make({ tenant }, columns, { expires_at, algorithm }) {
      const { modified_by: _by, modified_at: _at, ...unmodified } = columns;
      const { publicKey, privateKey } = await newClientKeyPair(algorithm);
      const client_key_id = newUuid<ClientKeyId>(random);
      const unsealed = { ...unmodified, client_key_id, expires_at };
      const row = clientKeyRow({ tenant, privateKey, random }, unsealed);
      return { row, reply: { body: viewClientKey(row, publicKey) } };
    },
  };
}

function readExpiry(text: string | null, now: Instant): Instant {
  if (text === null) return instantAfter(now, lifetimeMsDefault);
  const at = parseExpiry(text)?.at;
  if (at !== undefined && at > now && at <= now + lifetimeMsMax) return at;
  throw invalid('expires_at', 'must be a date-time in the future and within a year');
}

export interface ClientKeyListing extends ClientKeyReading, ListTools {}

/** Newest first. A key that was altered outside the vault is left out, and an entry records that it was altered. */
export function listClientKeys(tools: ClientKeyListing, caller: Caller): Decide {
  return async () => {
    const found = await tools.store.select(liveClientKeys(caller.tenant.id, tools.clock.now()));
    const { data: body, entries } = await listed(tools, caller, {
      table: 'client_keys',
      found,
      show: (row) => viewClientKey(row),
    });
    return { change: { entries }, reply: { status: 200, body } };
  };
}

/** @param publicKey PEM; only the response to the creation has it. */
function viewClientKey(row: Row<'client_keys'>, publicKey?: string): object {
  return {
    id: row.client_key_id,
    // The public clients read this name; older ones read the other.
    key_id: row.client_key_id,
    ...(publicKey !== undefined && { public_key_pem: publicKey }),
    expires_at: formatTimestamp(row.expires_at),
    created_by: row.created_by,
    created_at: formatTimestamp(row.created_at),
  };
}
