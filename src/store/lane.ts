/** A lane: turns the changes of concurrent requests into groups, one commit each. */
import type { Change, Outcome } from './change.ts';

/** The most changes one commit carries; bounds the time a group holds its locks. */
export const groupChangesMax = 256;

interface Pending {
  readonly change: Change;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/** Commits all changes it is given: an outcome or an error for each, in their order. */
export type CommitGroup = (changes: readonly Change[]) => Promise<readonly (Outcome | Error)[]>;

export interface Lane {
  commit(change: Change): Promise<Outcome>;
  /** Resolves once nothing accepted is waiting any more. */
  drained(): Promise<void>;
}

/**
 * `width` groups are under way at once; what arrives meanwhile becomes the next group. An idle lane
 * commits at the end of the current turn of the event loop; there is no timer to wait for.
 */
export function createLane(width: number, commitGroup: CommitGroup): Lane {
  let waiting: Pending[] = [];
  let running = 0;
  let scheduled = false;
  let onDrained: (() => void)[] = [];

  async function run(group: Pending[]): Promise<void> {
    running++;
    try {
      const outcomes = await commitGroup(group.map((pending) => pending.change));
      group.forEach((pending, index) => {
        const outcome = outcomes[index];
        if (outcome === undefined || outcome instanceof Error) pending.reject(outcome);
        else pending.resolve(outcome);
      });
    } catch (error) {
      for (const pending of group) pending.reject(error);
    } finally {
      running--;
      start();
    }
  }

  function start(): void {
    scheduled = false;
    while (waiting.length > 0 && running < width) {
      const group = waiting.slice(0, groupChangesMax);
      waiting = waiting.slice(group.length);
      void run(group);
    }
    if (waiting.length === 0 && running === 0) {
      for (const resolve of onDrained) resolve();
      onDrained = [];
    }
  }

  return {
    commit: (change) =>
      new Promise((resolve, reject) => {
        waiting.push({ change, resolve, reject });
        if (scheduled || running >= width) return;
        scheduled = true;
        setImmediate(start);
      }),
    drained: () =>
      waiting.length === 0 && running === 0
        ? Promise.resolve()
        : new Promise((resolve) => onDrained.push(resolve)),
  };
}
