/** The budgets of a policy: how many requests each key may send in an hour and in a day, and how many values. */
import { day, hour, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { type Caller, spenderOf } from '../../rules/caller.ts';
import { type EgressPolicy, egressCountMax } from '../../rules/egress-policies.ts';
import type { Store } from '../../store/store.ts';

const windows = [
  { limit: 'per_hour', name: 'an hour', windowMs: hour },
  { limit: 'per_day', name: 'a day', windowMs: day },
] as const;

export interface SpentEgress {
  readonly caller: Caller;
  readonly policy: EgressPolicy;
  readonly what: 'calls' | 'values';
  readonly times: number;
}

/** Rejects with `too_many_requests`; what was counted by then stays counted. */
export type SpendEgress = (spent: SpentEgress) => Promise<void>;

export function createEgressLimits({ limiter }: Pick<Store, 'limiter'>): SpendEgress {
  const limiters = windows.map((window) => ({
    ...window,
    limiter: limiter({
      name: `egress policy ${window.limit}`,
      requests: 2 * egressCountMax,
      windowMs: window.windowMs,
      blockMs: 0,
    }),
  }));
  return async ({ caller, policy, what, times }) => {
    const { application_id, counted_id } = spenderOf(caller);
    const counted = [caller.tenant.id, application_id, counted_id, what, nameOf(policy)].join(' ');
    for (const { limit, name, limiter: counter } of limiters) {
      const max = policy[what]?.[limit];
      if (max === undefined) continue;
      const { isTaken, resetMs } = await counter.take(counted, { times, max });
      if (!isTaken) throw exceeded({ max, what, name, resetMs });
    }
  };
}

/** A policy has no id. Its budget begins again if its host, methods or paths are changed. */
function nameOf({ host, port, methods, paths }: EgressPolicy): string {
  return JSON.stringify([host, port, methods, paths]);
}

interface ExceededPolicy {
  readonly max: number;
  readonly what: string;
  readonly name: string;
  readonly resetMs: number;
}

function exceeded({ max, what, name, resetMs }: ExceededPolicy): VaultError {
  return new VaultError('too_many_requests', {
    public: `The egress policy allows ${max} ${what} in ${name}.`,
    headers: { 'retry-after': String(Math.max(1, Math.ceil(resetMs / second))) },
  });
}
