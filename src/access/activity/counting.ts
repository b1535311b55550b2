/** Counting what the callers of each tenant do, in memory, until it is recorded. */
import { applicationOf, timesOf } from '../../audit/uses.ts';
import { type Clock, type Instant, minute, parseInstant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import { countRevealed, type Figures, latencyClassOf, newLatency } from './figures.ts';

/** Plain data, which can cross to another thread. */
export interface CountedActivity {
  readonly tenant_id: TenantId;
  /** When the minute began in which it was counted. */
  readonly minute: Instant;
  readonly figures: Figures;
}

export interface ActivityCounter {
  request(tenant: TenantId, status: number, tookMs: number): void;
  /** An entry that was committed. */
  entry(entry: LogEntry): void;
  /** Counts what another thread has counted, or what could not be recorded. */
  add(counted: readonly CountedActivity[]): void;
  /** What was counted since the last call. */
  take(): readonly CountedActivity[];
}

/** Of all tenants together. What exceeds them is not counted: figures must not take memory from requests. */
export const countedMax = 50_000;

/** Of the present minute. Every request adds to it, so it is changed in place. */
interface ActivityTally {
  requests: number;
  failed: number;
  refused: number;
  readonly latency: number[];
  readonly revealed: Map<string, number>;
}

export function createActivityCounter(clock: Clock): ActivityCounter {
  let present: Instant | undefined;
  let tallies = new Map<TenantId, ActivityTally>();
  let earlier: CountedActivity[] = [];

  function tallyOf(tenant: TenantId): ActivityTally | undefined {
    const begun = parseInstant(Math.floor(clock.now() / minute) * minute);
    if (begun !== present) close(begun);
    const known = tallies.get(tenant);
    if (known) return known;
    if (tallies.size + earlier.length >= countedMax) return undefined;
    const made = { requests: 0, failed: 0, refused: 0, latency: newLatency(), revealed: new Map() };
    tallies.set(tenant, made);
    return made;
  }

  function close(next: Instant | undefined): void {
    if (present !== undefined) {
      for (const [tenant_id, { revealed, ...tally }] of tallies) {
        earlier.push({
          tenant_id,
          minute: present,
          figures: { ...tally, revealed: Object.fromEntries(revealed) },
        });
      }
    }
    present = next;
    tallies = new Map();
  }

  return {
    request: (tenant, status, tookMs) => {
      const tally = tallyOf(tenant);
      if (!tally) return;
      const place = latencyClassOf(tookMs);
      tally.requests += 1;
      if (status >= 500) tally.failed += 1;
      tally.latency[place] = (tally.latency[place] ?? 0) + 1;
    },
    entry: (entry) => {
      const isRefusal = entry.result !== 'success';
      if (!isRefusal && entry.disclosure?.[0] !== 'r') return;
      const tally = tallyOf(entry.tenant_id);
      if (!tally) return;
      if (isRefusal) {
        tally.refused += timesOf(entry);
        return;
      }
      const application = applicationOf(entry);
      if (application === null) return;
      countRevealed(tally.revealed, application, 1);
    },
    add: (counted) => {
      for (const one of counted) if (earlier.length < countedMax) earlier.push(one);
    },
    take: () => {
      close(undefined);
      const taken = earlier;
      earlier = [];
      return taken;
    },
  };
}
