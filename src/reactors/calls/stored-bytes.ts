/** How much database space a tenant's reactor calls use: waiting calls, results, and logs. */
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { storedRunBytes } from '../../store/queries/reactors.ts';
import type { Store } from '../../store/store.ts';

/** Counting reads every row of the tenant, so each thread limits how often it counts. */
const countEveryMs = 10 * second;

export interface StoredBytes {
  /**
   * Counts the bytes, unless the tenant would exceed its quota. Bytes stored by other threads are included after at
   * most {@link countEveryMs}.
   */
  admit(tenant: Tenant, bytes: number): Promise<boolean>;
}

interface ByteCount {
  readonly at: Instant;
  bytes: number;
}

interface Counting {
  readonly store: Pick<Store, 'scan'>;
  readonly clock: Clock;
}

export function createStoredBytes({ store, clock }: Counting): StoredBytes {
  const counts = new Map<TenantId, Promise<ByteCount>>();

  const count = async (tenant: TenantId, at: Instant): Promise<ByteCount> => {
    const [sum] = await store.scan(storedRunBytes(tenant), { tenant, name: 'calls' });
    return { at, bytes: Number(sum?.bytes ?? 0) };
  };

  /** Concurrent requests share one count. */
  const currentOf = async (tenant: TenantId): Promise<ByteCount> => {
    const now = clock.now();
    const known = counts.get(tenant);
    const current = known && (await known.catch(() => undefined));
    if (current && now - current.at < countEveryMs) return current;
    const later = counts.get(tenant);
    if (later !== undefined && later !== known) return later;
    const counted = count(tenant, now);
    counts.set(tenant, counted);
    return counted;
  };

  return {
    admit: async ({ id, quotas }, bytes) => {
      const current = await currentOf(id);
      if (current.bytes + bytes > quotas.reactor_storage_limit) return false;
      current.bytes += bytes;
      return true;
    },
  };
}

export function storageExceeded({ quotas }: Tenant): VaultError {
  const limit = `${quotas.reactor_storage_limit} bytes (quota reactor_storage_limit)`;
  return new VaultError('too_many_requests', {
    public: `Calls of reactors of one tenant take at most ${limit}. Results go after a day.`,
    headers: { 'retry-after': '60' },
  });
}
