/** Collects the failures of work for many tenants: each is reported at the end, and none stops the other tenants. */
import { VaultError } from '../../base/errors.ts';
import type { Store } from '../store.ts';

export interface TenantFailures {
  /** `undefined` when it failed. @throws what is no failure of a single tenant's rows. */
  attempt<T>(work: () => Promise<T>): Promise<T | undefined>;
  add(failure: VaultError | undefined): void;
  /** @throws the first of them. */
  report(): void;
}

export function createFailures(store: Pick<Store, 'ping'>): TenantFailures {
  let first: VaultError | undefined;
  return {
    attempt: async (work) => {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof VaultError)) throw error;
        if (error.code !== 'integrity' && error.code !== 'unavailable') throw error;
        // If the engine itself is unavailable, every other tenant would fail as well.
        if (error.code === 'unavailable') await store.ping();
        first ??= error;
        return undefined;
      }
    },
    add: (failure) => {
      first ??= failure;
    },
    report: () => {
      if (first) throw first;
    },
  };
}
