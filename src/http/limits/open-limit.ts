/** How often one address may read what describes the service, which needs no key and is large. */
import { isDeepStrictEqual } from 'node:util';
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { networkOf } from '../../base/network.ts';
import { memoryLimiter } from '../../store/limiter.ts';
import type { AddressLimit } from './rate-limit-rules.ts';

export interface OpenLimit {
  /** Rejects with `too_many_requests`. */
  count(address: string): Promise<void>;
  /** An equal limit goes on counting; another one begins at zero. */
  setLimit(limit: AddressLimit | undefined): void;
}

/** Each server, and each of its threads, counts for itself: metrics are shown also without a database. */
export function createOpenLimit(limit: AddressLimit | undefined): OpenLimit {
  let inForce = limit;
  let count = countUnder(limit);
  return {
    count: (address) => count(address),
    setLimit: (next) => {
      if (isDeepStrictEqual(next, inForce)) return;
      inForce = next;
      count = countUnder(next);
    },
  };
}

function countUnder(limit: AddressLimit | undefined): OpenLimit['count'] {
  if (limit === undefined) return async () => undefined;
  const limiter = memoryLimiter({ name: 'description', ...limit, blockMs: 0 });
  return async (address) => {
    const { allowed, resetMs } = await limiter.count(networkOf(address));
    if (allowed) return;
    const seconds = Math.max(1, Math.ceil(resetMs / second));
    const limits = `${limit.requests} times in ${limit.windowMs / second} s`;
    throw new VaultError('too_many_requests', {
      public: `One address may read this ${limits}; try again in ${seconds} s.`,
      headers: { 'retry-after': String(seconds) },
    });
  };
}
