/** Keys that the root key has unwrapped: each is asked for once, and attempts after failures are rare. */
import { type Clock, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { LruCache } from '../../base/lru-cache.ts';
import { createGrowingPause, type GrowingPause } from '../../base/pauses.ts';
import type { WrappingKey } from '../../keys/root/root-key.ts';
import type { KeyHeader } from '../../keys/root/wrapped.ts';

/** About 100,000 keys: their names have 40 characters, and an entry counts 100 more. */
const cacheSizeMax = 100_000 * 140;

/** Of failures, which are remembered to not ask again at once. */
const failuresSizeMax = 10_000 * 140;

/** Calls to a source at a time; others wait their turn. */
const callsMax = 64;
const waitingMax = 2_000;

const pauses = { firstMs: second / 4, maxMs: 30 * second };

interface FailedUnwrapping {
  readonly error: unknown;
  readonly until: number;
  readonly pause: GrowingPause;
}

export interface KeyCache {
  /**
   * The unwrapped key. It stays in memory for as long as the stored row is the same, however long the source cannot be
   * reached; callers that ask at the same time share one call.
   * @throws VaultError `unavailable` when the source does not respond, and until the next attempt is due. What the
   * source refuses as altered is tried again at the same pace.
   */
  get(tenant: string, header: KeyHeader): Promise<WrappingKey>;
  /** Takes a key that this process has wrapped itself. */
  set(tenant: string, header: KeyHeader, key: WrappingKey): void;
}

export interface KeyCacheOptions {
  readonly clock: Clock;
  readonly unwrap: (tenant: string, header: KeyHeader) => Promise<WrappingKey>;
}

export function createKeyCache({ clock, unwrap }: KeyCacheOptions): KeyCache {
  const known = new LruCache<{ readonly name: string; readonly key: WrappingKey }>(cacheSizeMax);
  const failures = new LruCache<FailedUnwrapping>(failuresSizeMax);
  const pending = new Map<string, Promise<WrappingKey>>();
  const waiting: (() => void)[] = [];
  let running = 0;

  /** Resolves when it is the turn of a call, which then counts until {@link leave}. */
  async function enter(header: KeyHeader): Promise<void> {
    if (running < callsMax) {
      running += 1;
      return;
    }
    if (waiting.length >= waitingMax) throw busy(header);
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  /** The turn goes to the call that has waited longest. */
  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }

  async function ask(tenant: string, header: KeyHeader, name: string): Promise<WrappingKey> {
    const failure = failures.get(name);
    const now = clock.now();
    if (failure && now < failure.until && failure.until - now <= pauses.maxMs) throw failure.error;
    await enter(header);
    try {
      const key = await unwrap(tenant, header);
      failures.delete(name);
      known.set(tenant, { name, key });
      return key;
    } catch (error) {
      const pause = failure?.pause ?? createGrowingPause(pauses);
      failures.set(name, { error, until: clock.now() + pause.next(), pause });
      throw error;
    } finally {
      leave();
    }
  }

  return {
    get: async (tenant, header) => {
      const name = nameOf(tenant, header);
      const one = known.get(tenant);
      if (one?.name === name) return one.key;
      const asked = pending.get(name) ?? ask(tenant, header, name);
      pending.set(name, asked);
      try {
        return await asked;
      } finally {
        pending.delete(name);
      }
    },
    set: (tenant, header, key) => known.set(tenant, { name: nameOf(tenant, header), key }),
  };
}

/** By all that is unwrapped: an attacker can copy a part of it into another row, whose failures are its own. */
function nameOf(tenant: string, { vault, source, keyId, version, blob }: KeyHeader): string {
  return JSON.stringify([
    tenant,
    vault,
    source,
    keyId,
    version,
    Buffer.from(blob).toString('base64'),
  ]);
}

function busy({ source }: KeyHeader): VaultError {
  return keyUnavailable(`too many calls to the source of the root key (${source}) are waiting`);
}

/** The failure of a request whose tenant's keys cannot be unwrapped now. */
export function keyUnavailable(internal: string): VaultError {
  return new VaultError('unavailable', {
    public:
      'The vault cannot reach the key that protects this tenant. Nothing was done; try again.',
    internal,
    headers: { 'retry-after': '1' },
  });
}
