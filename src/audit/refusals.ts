/** Refusals are logged. A caller who repeats one adds to the log at most once a second. */
import { type Clock, second } from '../base/clock.ts';
import { reasonOf as errorReasonOf } from '../base/errors.ts';
import { networkOf } from '../base/network.ts';
import type { Log } from '../base/telemetry/log.ts';
import type { Change } from '../store/change.ts';
import type { CommitStep } from '../store/commit/steps.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';

export const refusalWindowMs = second;
/** The reasons of one caller in one second; further refusals are counted under the id `*`. */
export const refusalReasonsMax = 1000;
/** The windows of all callers. Refusals beyond them are logged one by one. */
export const refusalWindowsMax = 10_000;
/** Entries that are committed together when their seconds are over. */
const entriesPerCommit = 500;

export interface Refusals {
  /** Counts repeated refusals, which are not committed one by one. */
  readonly step: CommitStep;
  /** Logs the counts that are not logged yet. */
  close(): Promise<void>;
}

export interface RefusalsOptions {
  readonly store: Pick<Store, 'commit'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The refusals of one caller for one reason. */
interface RefusalWindow {
  /** Until then they are counted. */
  endsAt: number;
  /** Those that are not in the log yet. */
  count: number;
  /** The latest of them. */
  last: LogEntry;
  /** While an entry of the window is being committed. */
  logging: Promise<void> | undefined;
}

/** Refusals of one request that were counted in a window. */
interface CountedRefusals {
  readonly window: RefusalWindow;
  readonly times: number;
}

type Windows = Map<string, RefusalWindow>;
type Entries = Change['entries'];

/**
 * The first refusal of a caller for a reason is in the log before its response is sent. Further ones
 * within the second are counted, and become one entry with their count when the second is over. A count is lost
 * only if the process is killed.
 */
export function createRefusals({ store, clock, log }: RefusalsOptions): Refusals {
  const callers = new Map<string, Windows>();
  let size = 0;
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();

  function placeOf(entry: LogEntry): { windows: Windows; key: string; entry: LogEntry } {
    const caller = `${entry.tenant_id} ${callerOf(entry)}`;
    const windows = callers.get(caller) ?? new Map<string, RefusalWindow>();
    callers.set(caller, windows);
    const key = reasonOf(entry);
    if (windows.has(key) || windows.size < refusalReasonsMax) return { windows, key, entry };
    const any = { ...entry, entity_id: '*' };
    return { windows, key: reasonOf(any), entry: any };
  }

  function count(refused: LogEntry, times: number): CountedRefusals {
    const { windows, key, entry } = placeOf(refused);
    const known = windows.get(key);
    const window = known ?? { endsAt: clock.now(), count: 0, last: entry, logging: undefined };
    window.last = latestOf(window, entry);
    window.count += times;
    if (known === undefined && size < refusalWindowsMax) {
      windows.set(key, window);
      size++;
      timer ??= setTimeout(tick, refusalWindowMs).unref();
    }
    return { window, times };
  }

  /** If it fails, the refusals that are not yet in the log remain counted. */
  async function logAll(windows: readonly RefusalWindow[]): Promise<void> {
    const counts = windows.map((window) => window.count);
    const entries = windows.map((window) => counting(window.last, window.count));
    if (entries.length === 0) return;
    const logging = store.commit({ entries: entries as unknown as Entries }).then(() => undefined);
    const endsAt = clock.now() + refusalWindowMs;
    for (const window of windows) Object.assign(window, { count: 0, endsAt, logging });
    try {
      await logging;
    } catch (error) {
      for (const [at, window] of windows.entries()) {
        window.count += counts[at] ?? 0;
        window.endsAt = clock.now();
      }
      throw error;
    } finally {
      for (const window of windows) window.logging = undefined;
    }
  }

  /** No refusal is sent before the first of its second is in the log. */
  async function logRefusals(refused: Entries): Promise<void> {
    const counted = tally(refused).map(({ entry, times }) => count(entry, times));
    const windows = [...new Set(counted.map(({ window }) => window))];
    const now = clock.now();
    const others = windows.map(({ logging }) => logging);
    const own = logAll(windows.filter((window) => isDue(window, now)));
    const failed = (await Promise.allSettled([own, ...others])).find(isRejected);
    if (failed === undefined) return;
    // A request that fails was not refused, and leaves nothing behind.
    for (const { window, times } of counted) window.count = Math.max(0, window.count - times);
    throw failed.reason;
  }

  /** Windows that are over and hold refusals; of the others those that are over are forgotten. */
  function dueWindows(all: boolean): RefusalWindow[] {
    const now = clock.now();
    const due: RefusalWindow[] = [];
    for (const [caller, windows] of callers) {
      for (const [key, window] of windows) {
        if (!all && !isDue(window, now)) continue;
        if (window.count > 0) due.push(window);
        else if (window.logging === undefined && windows.delete(key)) size--;
      }
      if (windows.size === 0) callers.delete(caller);
    }
    return due;
  }

  /** Fails with the first commit that does. */
  async function flush(all: boolean): Promise<void> {
    const due = dueWindows(all);
    for (let from = 0; from < due.length; from += entriesPerCommit) {
      const some = due.slice(from, from + entriesPerCommit);
      // Another refusal may have caused one of them to be logged in the meantime.
      await logAll(some.filter((window) => window.count > 0 && window.logging === undefined));
    }
  }

  /** Counts that could not be written are still due a second later. */
  function tick(): void {
    flushing = flush(false)
      .catch(() => undefined)
      .then(() => {
        timer = size > 0 ? setTimeout(tick, refusalWindowMs).unref() : undefined;
      });
  }

  return {
    step: countingRefusals(logRefusals),
    close: async () => {
      await flushing;
      clearTimeout(timer);
      await flush(true).catch((error) => {
        const left = dueWindows(true).reduce((sum, window) => sum + window.count, 0);
        const fields = { count: left, reason: errorReasonOf(error) };
        log.error('refusals that were counted are not in the log', fields);
      });
    },
  };
}

/**
 * Hands repeated refusals to `count`, which resolves once the first refusal of its second is in the log. All other
 * changes are committed.
 */
export function countingRefusals(count: (refused: Change['entries']) => Promise<void>): CommitStep {
  return {
    prepare: (change) =>
      isRefusal(change) ? count(change.entries).then(() => undefined) : withoutRepeats(change),
  };
}

/** An entry for several refusals names an address only where all of them came from it. */
function latestOf({ count, last }: RefusalWindow, entry: LogEntry): LogEntry {
  return count === 0 || last.origin === entry.origin ? entry : { ...entry, origin: null };
}

/** Also for a clock that was set back: nothing waits for longer than a second. */
function isDue({ endsAt, logging }: RefusalWindow, now: number): boolean {
  return logging === undefined && (now >= endsAt || now < endsAt - refusalWindowMs);
}

function isRejected(result: PromiseSettledResult<void>): result is PromiseRejectedResult {
  return result.status === 'rejected';
}

/** True for a change that records only refusals. */
function isRefusal({ insert, replace, remove, entries }: Change): boolean {
  return !(insert ?? replace ?? remove) && entries.every(isCounted);
}

/** A refusal that tells something of a value is an entry of its own: each of them counts against a budget. */
function isCounted({ result, disclosure }: LogEntry): boolean {
  return result !== 'success' && disclosure === null;
}

/** Lines of one body that are refused for one reason become one entry, even if other lines are accepted. */
function withoutRepeats(change: Change): Change {
  const { entries } = change;
  if (entries.length === 1 || !entries.some(isCounted)) return change;
  const counted = tally(entries).map(({ entry, times }) => counting(entry, times));
  return { ...change, entries: counted as unknown as Change['entries'] };
}

interface RefusalTally {
  readonly entry: LogEntry;
  readonly times: number;
}

/** Equal refusals together, in the order in which each first occurs; what succeeded stays by itself. */
function tally(entries: Change['entries']): RefusalTally[] {
  if (entries.length === 1) return [{ entry: entries[0], times: 1 }];
  const tallies = new Map<string | number, RefusalTally>();
  for (const [at, entry] of entries.entries()) {
    const key = isCounted(entry) ? `${callerOf(entry)} ${reasonOf(entry)}` : at;
    tallies.set(key, { entry, times: (tallies.get(key)?.times ?? 0) + 1 });
  }
  return [...tallies.values()];
}

/**
 * Refusals of different keys, or of one key from different networks, stay apart: whoever investigates asks for both.
 * Within a network of IPv6, one client can have any number of addresses.
 */
function callerOf({ actor_id, source, origin }: LogEntry): string {
  const network = origin === null ? '' : networkOf(origin);
  return `${actor_id} ${source?.key_id ?? ''} ${network}`;
}

/** The same caller, refused again in the same way for the same thing. */
function reasonOf({ entity_type, entity_id, operation, message, result }: LogEntry): string {
  return JSON.stringify([entity_type, entity_id, operation, message, result]);
}

/** One entry for so many refusals. */
function counting(entry: LogEntry, times: number): LogEntry {
  return times === 1 ? entry : { ...entry, message: `${entry.message} (${times} times)` };
}
