/** How much a tenant's calls of reactors take in the database: what waits, results, and logs. */
import { type Clock, type Instant, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { storedRunBytes } from '../../store/queries/reactors.ts';
import type { Store } from '../../store/store.ts';

/** Adding up all rows of a tenant reads every one of them, so each thread does it no more often. */
const countEveryMs = 10 * second;

export interface StoredBytes {
  /**
   * Counts so many bytes more, unless the tenant then has more than its quota; what other threads store is seen within
   * {@link countEveryMs}.
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
    const [sum] = await store.scan(storedRunBytes(tenant));
    return { at, bytes: Number(sum?.bytes ?? 0) };
  };

  /** Requests that come at once wait for one count. */
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
