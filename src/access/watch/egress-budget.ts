/** Egress budgets: how many values each key of an application may have revealed in an hour and in a day. */
import { day, hour, second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import type { TenantId } from '../../base/ids.ts';
import type { Change } from '../../store/change.ts';
import type { CommitStep } from '../../store/commit/steps.ts';
import type { LogEntry, Spender } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';
import { type EgressBudget, egressBudgetMax } from '../applications/row.ts';
import type { ApplicationFacts } from './application-facts.ts';
import type { RaiseAlert } from './raise.ts';

/** An alert is raised once a window has used this share of its budget. */
const alertShare = 0.8;

/** Nothing is refused by the counters themselves: each budget is another number. */
const counterOf = (name: string, windowMs: number) => ({
  name,
  requests: 2 * egressBudgetMax,
  windowMs,
  blockMs: 0,
});

const windows = [
  { limit: 'per_hour', name: 'an hour', counter: counterOf('egress per hour', hour) },
  { limit: 'per_day', name: 'a day', counter: counterOf('egress per day', day) },
] as const;

export interface EgressTools {
  /** Only its counters are used. */
  readonly store: Pick<Store, 'limiter'>;
  readonly facts: ApplicationFacts;
  readonly raise: RaiseAlert;
}

/** What was taken for one change, to be given back if it is not committed. */
type Returnable = () => Promise<void>;

/**
 * Values are taken from the budget before their change is committed, in one step that takes all of them or none, and
 * no value leaves before its commit. So however many requests, threads, and servers there are, no key reveals more in a
 * window than its budget. What a commit does not use is given back; only a process that is killed in between, or a
 * give-back that fails, leaves the budget smaller than it is.
 */
export function limitingEgress({ store, facts, raise }: EgressTools): CommitStep {
  const limiters = windows.map((window) => ({
    ...window,
    limiter: store.limiter(window.counter),
  }));
  /** By an entry that reveals, which no other step replaces. */
  const taken = new WeakMap<LogEntry, Returnable>();
  /** Being given back, which the next request waits for: it may need just these. */
  const returning = new Set<Promise<void>>();

  /** `undefined`, without a promise, where no budget applies: nearly every commit passes here. */
  function spendingsOf(change: Change): Promise<readonly Spending[]> | undefined {
    const isFree = (entry: LogEntry) =>
      !isRevealing(entry) ||
      entry.spenders.every(({ application_id }) => {
        const known = facts.known(entry.tenant_id, application_id);
        return known !== undefined && known?.budget === undefined;
      });
    if (change.entries.every(isFree)) return undefined;
    return Promise.all(
      revealsIn(change.entries).map(async (one) => ({
        ...one,
        budget: (await facts.of(one.tenant, one.spender.application_id))?.budget,
      })),
    );
  }

  async function take(change: Change, spendings: readonly Spending[]): Promise<Change> {
    await Promise.all(returning);
    const returns: Returnable[] = [];
    try {
      for (const spending of spendings) {
        for (const window of limiters) await takeOne(spending, window, returns);
      }
    } catch (error) {
      await giveBack(returns);
      throw error;
    }
    const [first] = spendings;
    if (first && returns.length > 0) taken.set(first.entry, () => giveBack(returns));
    return change;
  }

  async function takeOne(
    { tenant, spender, budget, values, entry }: Spending,
    { limit, name, limiter }: (typeof limiters)[number],
    returns: Returnable[],
  ): Promise<void> {
    const max = budget?.[limit];
    if (max === undefined) return;
    const { application_id, counted_id: id } = spender;
    const counted = `${tenant} ${application_id} ${id}`;
    const { isTaken, used, endsAt, resetMs } = await limiter.take(counted, { times: values, max });
    if (!isTaken) throw exceeded({ name, max, resetMs });
    returns.push(() => limiter.giveBack(counted, { times: values, endsAt }));
    const share = Math.ceil(max * alertShare);
    if (used < share || used - values >= share) return;
    raise('egress_budget', entry, { id, detail: `${used} of ${max} values in ${name}` });
  }

  async function giveBack(returns: readonly Returnable[]): Promise<void> {
    await Promise.allSettled(returns.map((one) => one()));
  }

  return {
    prepare: (change) => {
      const spendings = spendingsOf(change);
      if (spendings === undefined) return change;
      return spendings.then((found) => take(change, found));
    },
    conclude: ({ change, outcome }) => {
      if (outcome !== undefined && outcome.conflict === undefined) return;
      for (const entry of change.entries) {
        const given = taken.get(entry)?.();
        if (given === undefined) continue;
        taken.delete(entry);
        returning.add(given);
        given.finally(() => returning.delete(given));
      }
    },
  };
}

/** What a commit is about to reveal on account of one spender. */
interface Reveals {
  readonly tenant: TenantId;
  readonly spender: Spender;
  readonly values: number;
  /** The first of the entries. */
  readonly entry: LogEntry;
}

interface Spending extends Reveals {
  readonly budget: EgressBudget | undefined;
}

interface RevealingEntry extends LogEntry {
  readonly spenders: NonNullable<LogEntry['spenders']>;
}

/** Also of a request that failed, if its failure tells something of the value. */
function isRevealing(entry: LogEntry): entry is RevealingEntry {
  const { disclosure, spenders } = entry;
  return disclosure?.[0] === 'r' && spenders !== undefined;
}

function revealsIn(entries: Change['entries']): readonly Reveals[] {
  const found = new Map<string, Reveals>();
  for (const entry of entries.filter(isRevealing)) {
    const { tenant_id: tenant, spenders } = entry;
    for (const spender of spenders) {
      const name = `${spender.application_id} ${spender.counted_id}`;
      const known = found.get(name);
      const values = (known?.values ?? 0) + 1;
      found.set(name, { tenant, spender, values, entry: known?.entry ?? entry });
    }
  }
  return [...found.values()];
}

interface ExceededWindow {
  readonly name: string;
  readonly max: number;
  readonly resetMs: number;
}

function exceeded({ name, max, resetMs }: ExceededWindow): VaultError {
  return new VaultError('too_many_requests', {
    public: `The key may have ${max} values revealed in ${name} (egress_budget).`,
    headers: { 'retry-after': String(Math.max(1, Math.ceil(resetMs / second))) },
  });
}
