/** Authentication: from the key of a request to its caller. */

import { type Clock, hour, type Instant, second } from '../base/clock.ts';
import { isIntegrityError, VaultError } from '../base/errors.ts';
import { ExpiringMap } from '../base/expiring-map.ts';
import { LruCache } from '../base/lru-cache.ts';
import { apiKeyPlausible, hashApiKey } from '../keys/api-key.ts';
import type { RefusedKey } from '../rules/anonymous-entries.ts';
import { authenticated, type Caller, type Credential, type Origin } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { requireProven } from '../rules/proven-row.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { authorityOf, type StandingAuthority } from './authority.ts';
import type { KeyFlaw, OnFailedAuthentication } from './failed-authentication.ts';
import { type FailedAttempts, unlimitedAttempts } from './failure-limit.ts';

/** At once wherever the key, its holder and the tenant are known. Rejects with `unauthenticated`. */
export type Authenticate = (key: string | undefined, origin: Origin) => Caller | Promise<Caller>;

/** No cache outlives the end of a session. */
interface Principal extends StandingAuthority {
  readonly key: Row<'api_keys'>;
}

/** A stored key. Without a principal it gives no access; a flaw means that the row was altered outside the vault. */
interface LoadedKey {
  readonly key: RefusedKey;
  readonly principal?: Principal;
  readonly flaw?: KeyFlaw;
}

/**
 * A revoked key, or one whose rules changed, works on no server for longer than a second. Half of the second
 * is reserved for the read itself.
 */
const staleMsMax = second / 2;
const principalsCached = 10_000;

/** How exactly the last use of a key is known. */
const useNotedMs = hour;

export interface AuthenticateOptions {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
  readonly onFailure: OnFailedAuthentication;
  /** Without it failed attempts are not limited. */
  readonly attempts?: FailedAttempts;
}

/** Of the keys that were valid, in characters: some ten thousand keys. */
const seenSizeMax = 1_500_000;

/**
 * Keys are found by their SHA-256, so the time of a look-up does not reveal how much of a
 * guess was right. Every refusal looks the same, whatever its reason.
 */
export function createAuthentication({
  store,
  tenants,
  clock,
  onFailure,
  attempts = unlimitedAttempts,
}: AuthenticateOptions): Authenticate {
  /** By their hash: failures of others at their address cannot delay these. */
  const seen = new LruCache<true>(seenSizeMax);
  const recent = new ExpiringMap<string, Principal>({
    clock,
    ageMsMax: staleMsMax,
    entriesMax: principalsCached,
    // What this process commits takes effect at once here; other servers see it within a second.
    epoch: () => store.epochs.now('access'),
  });

  /** The principal of the key, if every row that leads to it is as the vault wrote it. */
  async function load(hash: string): Promise<LoadedKey | undefined> {
    const stored = await store.get('api_keys', { key_hash: hash });
    if (stored === undefined) return undefined;
    const { tenant_id, key_id } = stored;
    let key: RefusedKey = { tenant_id, key_id };
    const tenant = await tenants.findForRequest(tenant_id);
    if (tenant === undefined) {
      const altered = (await tenants.row(tenant_id)) !== undefined;
      return altered ? { key, flaw: 'altered' } : { key };
    }
    try {
      const proven = requireProven(tenant, 'api_keys', stored);
      key = proven;
      return await holderOf(tenant, proven);
    } catch (error) {
      if (!isIntegrityError(error)) throw error;
      return { key, flaw: 'altered' };
    }
  }

  async function holderOf(tenant: Tenant, key: Row<'api_keys'>): Promise<LoadedKey> {
    const authority = await authorityOf(store, tenant, {
      credential: credentialOf(key),
      now: clock.now(),
    });
    if (!('ended' in authority)) return { key, principal: { key, ...authority } };
    // A key still exists while its application or session is being removed.
    return authority.ended === 'key' && key.session_id === null ? putBack(key) : { key };
  }

  /** The application does not name the key: it was deleted just now, or was put back since. */
  async function putBack(key: Row<'api_keys'>): Promise<LoadedKey> {
    const still = await store.get('api_keys', { key_hash: key.key_hash });
    return still ? { key, flaw: 'altered' } : { key };
  }

  /** No request waits for it, and its failure is ignored: of several concurrent writers, one is enough. */
  function noteUse(caller: Caller, key: Row<'api_keys'>): void {
    const now = clock.now();
    const known = key.last_used_at !== null && now - key.last_used_at < useNotedMs;
    if (known || caller.session !== undefined) return;
    const fact = { entity: 'application_key', id: key.key_id, operation: 'use' } as const;
    const used = { ...key, version: key.version + 1, last_used_at: now };
    store
      .commit({ replace: { api_keys: [used] }, entries: [entryOf(caller, now, fact)] })
      .catch(() => undefined);
  }

  /**
   * A key that was valid here is no guess, and is not counted: what goes on under it must learn that it has ended,
   * however many guesses come from the same address.
   */
  async function refuse(
    origin: Origin,
    { key, flaw, hash }: Partial<LoadedKey> & { readonly hash?: string } = {},
  ): Promise<never> {
    await onFailure(origin, key, flaw);
    if (hash === undefined || !seen.get(hash)) await attempts.count(origin.address);
    throw new VaultError('unauthenticated', {
      public: 'Send a valid API key in the header SVC-API-KEY.',
    });
  }

  /** A string that cannot be a key costs no look-up. */
  async function find(key: string, hash: string, origin: Origin): Promise<LoadedKey | undefined> {
    if (seen.get(hash)) return load(hash);
    return apiKeyPlausible(key) ? attempts.lookUp(origin.address, () => load(hash)) : undefined;
  }

  function callerOf(key: string, origin: Origin): Caller | Promise<Caller> {
    const hash = hashApiKey(key);
    const known = recent.get(hash);
    const tenant = known && tenants.known(known.key.tenant_id);
    return known && tenant && !hasEnded(known, clock.now())
      ? callerBy(known, tenant, origin)
      : readCaller(key, hash, origin);
  }

  async function readCaller(key: string, hash: string, origin: Origin): Promise<Caller> {
    const known = recent.get(hash);
    const reading = recent.reading();
    const loaded = known ? undefined : await find(key, hash, origin);
    const principal = known ?? loaded?.principal;
    if (principal === undefined || hasEnded(principal, clock.now())) {
      const key = principal?.key ?? loaded?.key;
      return refuse(origin, {
        hash,
        ...(key && { key }),
        ...(loaded?.flaw && { flaw: loaded.flaw }),
      });
    }
    const tenant = await tenants.findForRequest(principal.key.tenant_id);
    if (tenant === undefined) return refuse(origin, { hash, key: principal.key });
    const caller = callerBy(principal, tenant, origin);
    if (known) return caller;
    // A session that is not authorized yet is read every time, so that it can be used at once.
    if (caller.policy.size > 0) recent.set(hash, principal, reading);
    seen.set(hash, true);
    noteUse(caller, principal.key);
    return caller;
  }

  return (key, origin) => (key === undefined ? refuse(origin) : callerOf(key, origin));
}

function callerBy(principal: Principal, tenant: Tenant, origin: Origin): Caller {
  const { kind, policy, authorizer, spenders, origins, egress } = principal;
  return authenticated({
    ...credentialOf(principal.key),
    tenant,
    kind,
    policy,
    ...(authorizer && { authorizer }),
    spenders,
    ...(origins && { pageOrigins: origins }),
    ...(egress && { egress }),
    origin,
  });
}

function credentialOf({ application_id, key_id, session_id }: Row<'api_keys'>): Credential {
  return { application: application_id, key: key_id, session: session_id ?? undefined };
}

function hasEnded({ expiresAt }: Principal, now: Instant): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
