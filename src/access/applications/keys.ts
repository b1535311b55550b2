/** The keys of an application: several at once, so that one can take over before another is deleted. */
import type { Clock } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { Actor } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import { ifProven } from '../../rules/proven-row.ts';
import { rowOf } from '../../rules/stored-resource.ts';
import type { Store } from '../../store/store.ts';
import { newKey, viewKey } from './api-key-row.ts';
import { keyOf, keysOf, noKey, provenKeysOf, unprovenKey } from './queries.ts';
import type { ApplicationReading } from './resource.ts';
import { keyIdsOf, withKeyIds } from './row.ts';

const keysPerApplicationMax = 3;

export interface KeyWriting {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * From the decision `not_found`, or `unprocessable` when the application has all the keys it may
 * have. The application's version is raised with each key, so concurrent requests cannot exceed it.
 */
export function createKey(
  { store, clock, random }: KeyWriting,
  actor: Actor,
  application: string,
): Decide {
  const { tenant, application: by } = actor;
  return async () => {
    const now = clock.now();
    const row = await rowOf(store, 'applications', { tenant, id: application });
    const keys = await keysOf(store, tenant.id, [row.application_id]);
    const ids = keyIdsOf(row).filter((one) => keys.some(({ key_id }) => key_id === one));
    if (ids.length >= keysPerApplicationMax) throw tooManyKeys();
    const { application_id, type: kind } = row;
    const key = newKey({ tenant, application: application_id, kind, by, now, random });
    const id = key.row.key_id;
    return {
      change: {
        replace: { applications: [withKeyIds(tenant, row, [...ids, id])] },
        insert: { api_keys: [key.row] },
        entries: [entryOf(actor, now, { entity: 'application_key', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/applications/${application_id}/keys/${id}`,
        body: viewKey(key.row, key.text),
      },
    };
  };
}

function tooManyKeys(): VaultError {
  return new VaultError('unprocessable', {
    public: `An application has at most ${keysPerApplicationMax} keys; delete one first.`,
  });
}

export interface KeyQuery {
  readonly id?: readonly string[];
  /** Kinds of application. */
  readonly type?: readonly string[];
}

/** From the decision `not_found`. */
export function listKeys(
  { store, clock }: ApplicationReading,
  actor: Actor,
  { application, query }: { readonly application: string; readonly query: KeyQuery },
): Decide {
  const ids = query.id?.map((id) => id.toLowerCase());
  return async () => {
    const { tenant } = actor;
    const row = await rowOf(store, 'applications', { tenant, id: application });
    const keys = await provenKeysOf(store, tenant, [row]);
    const wanted = keys.filter(
      (key) => (ids?.includes(key.key_id) ?? true) && (query.type?.includes(row.type) ?? true),
    );
    const id = row.application_id;
    const fact = { entity: 'application_key', id, operation: 'list' } as const;
    return {
      change: { entries: [entryOf(actor, clock.now(), fact)] },
      reply: { status: 200, body: wanted.map((key) => viewKey(key)) },
    };
  };
}

export interface KeyPath {
  readonly id: string;
  readonly keyId: string;
}

/** From the decision `not_found`. */
export function readKey({ store, clock }: ApplicationReading, actor: Actor, path: KeyPath): Decide {
  return async () => {
    const { tenant } = actor;
    const application = await rowOf(store, 'applications', { tenant, id: path.id });
    const { application_id } = application;
    const row = await keyOf(store, tenant, { application: application_id, id: path.keyId });
    if (!keyIdsOf(application).includes(row.key_id)) throw noKey();
    const fact = { entity: 'application_key', id: row.key_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(actor, clock.now(), fact)] },
      reply: { status: 200, body: viewKey(row) },
    };
  };
}

/**
 * From the decision `not_found`. The key works nowhere a second later, also where its row is put back:
 * the application does not name it any more.
 */
export function deleteKey(
  { store, clock }: ApplicationReading,
  actor: Actor,
  path: KeyPath,
): Decide {
  return async () => {
    const { tenant } = actor;
    const application = await rowOf(store, 'applications', { tenant, id: path.id });
    const { application_id } = application;
    const found = await unprovenKey(store, tenant.id, path.keyId);
    const { key_hash, version, key_id } = found;
    // A row that was altered may name another application. Its own application still names the key.
    const own = ifProven(tenant, 'api_keys', found);
    const isNamed = keyIdsOf(application).includes(key_id);
    const isOwn = own?.application_id === application_id && own.session_id === null;
    if (!isOwn && (own !== undefined || !isNamed)) throw noKey();
    const event = { application_key: { application_id } };
    const fact = { entity: 'application_key', id: key_id, operation: 'delete', event } as const;
    const ids = keyIdsOf(application).filter((id) => id !== key_id);
    return {
      change: {
        replace: { applications: [withKeyIds(tenant, application, ids)] },
        remove: { api_keys: [{ key_hash, version, key_id }] },
        entries: [entryOf(actor, clock.now(), fact)],
      },
      reply: { status: 204 },
    };
  };
}

/** What became of `POST /applications/{id}/regenerate`. */
export function regenerateKey(): Decide {
  throw new VaultError('gone', {
    public:
      'Regenerating a key is removed. Create a new key with POST /applications/{id}/keys, and ' +
      'delete the old one with DELETE /applications/{id}/keys/{keyId} when nothing uses it any more.',
  });
}
