/** Alerts about how much a key does: requests that are refused, values that are revealed, and cards of one BIN. */
import { type Clock, day, hour, minute } from '../../base/clock.ts';
import { searchTermOf } from '../../keys/digest.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Limiter } from '../../store/limiter.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';
import type { RaiseAlert } from './raise.ts';
import { createTally, type Reported, type UseTally } from './tally.ts';

export interface CountedUseTools {
  readonly store: Pick<Store, 'limiter'>;
  readonly tenants: Pick<Tenants, 'find' | 'known'>;
  readonly clock: Clock;
}

/** @returns a promise where something has to be awaited. */
export type WatchEntry = (entry: LogEntry) => Promise<unknown> | undefined;

interface Use {
  readonly entry: LogEntry;
  readonly tenant: Tenant;
  /** Of the key, the person, or the application that is counted. */
  readonly id: string;
  /** The threshold, which each tenant can choose. */
  readonly max: number;
}

/** A count goes to the shared counters in so many steps to its threshold. */
const steps = 20;
const stepOf = (max: number) => Math.ceil(max / steps);

/** Of the one who was refused, also where others act with the same rights. */
export function watchRefusals(tools: CountedUseTools, raise: RaiseAlert): WatchEntry {
  const tally = thresholdTally(tools, raise, {
    kind: 'refusals',
    window: { ms: minute, name: 'a minute' },
    counterOf: ({ tenant, id }) => `${tenant.id} ${id}`,
  });
  return (entry) => {
    const { tenant_id, source, actor_id, result } = entry;
    const id = source?.key_id ?? source?.person_id ?? actor_id;
    if (result === 'success' || id === null) return undefined;
    return withTenant(tools, entry, (tenant) => {
      const max = tenant.quotas.alert_refusals;
      const use = { entry, tenant, id, max };
      return tally(`${tenant_id} ${id}`, { times: 1, stepMax: stepOf(max), use });
    });
  };
}

/** The shared counters do not show a BIN: nothing else in the database does. */
export function watchBins(tools: CountedUseTools, raise: RaiseAlert): WatchEntry {
  const tally = thresholdTally(tools, raise, {
    kind: 'bin',
    window: { ms: hour, name: 'an hour' },
    counterOf: ({ tenant, id, entry }) =>
      Buffer.from(
        // No field of a token has this name, so no term under which one is found is ever the same.
        searchTermOf(tenant.keyring.secret('search'), 'bin of a key', `${id} ${entry.bin}`),
      ).toString('base64url'),
  });
  return (entry) => {
    const { bin, spenders } = entry;
    if (bin === undefined || spenders === undefined) return undefined;
    return withTenant(tools, entry, (tenant) => {
      const max = tenant.quotas.alert_bin;
      return all(
        spenders.map(({ counted_id: id }) => {
          const use = { entry, tenant, id, max };
          return tally(`${tenant.id} ${id} ${bin}`, { times: 1, stepMax: stepOf(max), use });
        }),
      );
    });
  };
}

interface Threshold {
  readonly kind: 'refusals' | 'bin';
  readonly window: { readonly ms: number; readonly name: string };
  /** The name of the shared counter. */
  readonly counterOf: (use: Use) => string;
}

/** Raises the alert once in a window, whichever server counts the use that reaches the threshold. */
function thresholdTally(
  { store, clock }: CountedUseTools,
  raise: RaiseAlert,
  { kind, window, counterOf }: Threshold,
): UseTally<Use> {
  const limiters = new Map<number, Limiter>();
  const limiterOf = (max: number) => {
    const name = `alert ${kind} ${max}`;
    const limit = { name, requests: max - 1, windowMs: window.ms, blockMs: 0 };
    const limiter = limiters.get(max) ?? store.limiter(limit);
    limiters.set(max, limiter);
    return limiter;
  };
  return createTally<Use>({
    clock,
    windowMs: window.ms,
    report: async (_, times, use) => {
      const { entry, id, max } = use;
      const counted = await limiterOf(max).count(counterOf(use), times);
      if (counted.isFirstRefusal) raise(kind, entry, { id, detail: `${max} in ${window.name}` });
      const left = counted.remaining + 1;
      return counted.allowed ? { left } : { left, quietMs: counted.resetMs };
    },
  });
}

/** A key reveals far more than in its own week: so many times its hourly mean. */
const meanFactor = 10;
const weekMs = 7 * day;
/** Uses are still counted, for the mean of the week. */
const decided: Reported = { left: Number.POSITIVE_INFINITY };
/** Nothing is refused by these counters. */
const unlimited = 2 ** 50;

export function watchReveals(tools: CountedUseTools, raise: RaiseAlert): WatchEntry {
  const { store, clock } = tools;
  const meter = (name: string, windowMs: number) =>
    store.limiter({ name, requests: unlimited, windowMs, blockMs: 0 });
  const hourly = meter('reveals in an hour', hour);
  const weekly = meter('reveals in a week', weekMs);
  const tally = createTally<Use>({
    clock,
    windowMs: hour,
    report: async (name, times, { entry, id, max: min }) => {
      const [inHour, inWeek] = await Promise.all(
        [hourly, weekly].map((limiter) => limiter.take(name, { times, max: unlimited })),
      );
      if (!inHour || !inWeek) return decided;
      const hoursBefore = Math.max(1, (weekMs - inWeek.resetMs) / hour - 1);
      const mean = Math.max(0, inWeek.used - inHour.used) / hoursBefore;
      const far = Math.max(min, Math.ceil(meanFactor * mean));
      if (inHour.used < far) return { left: far - inHour.used };
      if (inHour.used - times < far) {
        const detail = `${inHour.used} values in an hour, ${Math.round(mean)} on average`;
        raise('reveals', entry, { id, detail });
      }
      return decided;
    },
  });
  return (entry) => {
    const { tenant_id, spenders, disclosure } = entry;
    if (disclosure?.[0] !== 'r' || !spenders) return undefined;
    return withTenant(tools, entry, (tenant) => {
      const max = tenant.quotas.alert_reveals;
      return all(
        spenders.map(({ counted_id: id }) => {
          const use = { entry, tenant, id, max };
          return tally(`${tenant_id} ${id}`, { times: 1, stepMax: stepOf(max), use });
        }),
      );
    });
  };
}

function withTenant(
  { tenants }: Pick<CountedUseTools, 'tenants'>,
  { tenant_id }: LogEntry,
  count: (tenant: Tenant) => Promise<unknown> | undefined,
): Promise<unknown> | undefined {
  const known = tenants.known(tenant_id);
  return known
    ? count(known)
    : tenants.find(tenant_id).then((tenant) => (tenant ? count(tenant) : undefined));
}

/** Nothing to await where none of them reports. */
function all(counting: readonly (Promise<unknown> | undefined)[]): Promise<unknown> | undefined {
  const reporting = counting.filter((one) => one !== undefined);
  return reporting.length === 0 ? undefined : Promise.all(reporting);
}
