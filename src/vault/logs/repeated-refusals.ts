/** Refusals as entries of the log: which are repeats of one another, and how several are one entry. */
import type { LogEntry } from '../../lib/log-chain/entries.ts';
import type { Change } from '../../store/change.ts';

/** True for a change that only says what was not done. */
export function isRefusal({ insert, replace, remove, entries }: Change): boolean {
  if (insert ?? replace ?? remove) return false;
  return entries.every(({ result }) => result !== 'success');
}

/** Lines of one body that are refused for one reason are one entry, also beside lines that are not. */
export function withoutRepeats(change: Change): Change {
  const { entries } = change;
  if (entries.length === 1 || entries.every(({ result }) => result === 'success')) return change;
  const counted = tally(entries).map(({ entry, times }) => counting(entry, times));
  return { ...change, entries: counted as unknown as Change['entries'] };
}

export interface Tally {
  readonly entry: LogEntry;
  readonly times: number;
}

/** Equal refusals together, in the order in which each first occurs; what succeeded stays by itself. */
export function tally(entries: Change['entries']): Tally[] {
  if (entries.length === 1) return [{ entry: entries[0], times: 1 }];
  const tallies = new Map<string | number, Tally>();
  for (const [at, entry] of entries.entries()) {
    const key = entry.result === 'success' ? at : `${entry.actor_id} ${reasonOf(entry)}`;
    tallies.set(key, { entry, times: (tallies.get(key)?.times ?? 0) + 1 });
  }
  return [...tallies.values()];
}

/** The same caller, refused again in the same way for the same thing. */
export function reasonOf({ entity_type, entity_id, operation, message, result }: LogEntry): string {
  return JSON.stringify([entity_type, entity_id, operation, message, result]);
}

/** One entry for so many refusals. */
export function counting(entry: LogEntry, times: number): LogEntry {
  return times === 1 ? entry : { ...entry, message: `${entry.message} (${times} times)` };
}
