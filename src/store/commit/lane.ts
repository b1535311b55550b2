/** A lane: turns the changes of concurrent requests into groups, one commit each. */
import { type Change, type FlatChange, flatten, type Outcome } from '../change.ts';
import { unavailable } from '../unavailable.ts';
import { monotonicMs, type Pending, Queue, waitMsMax, weightOf } from './queue.ts';

/**
 * Commits all changes it is given: an outcome or an error for each, in their order.
 * @param giveUpAt by `monotonicMs`: a commit that could not begin by then does not begin.
 */
export type CommitGroup = (
  changes: readonly FlatChange[],
  giveUpAt: number,
) => Promise<readonly (Outcome | Error)[]>;

export interface Lane {
  /** Rejects with `overloaded` when too much waits already, with `unavailable` once closed. */
  commit(change: Change): Promise<Outcome>;
  /** Accepts nothing more, and resolves once nothing accepted is waiting. */
  close(): Promise<void>;
}

/**
 * `width` groups are under way at once; what arrives meanwhile becomes the next group. An idle lane
 * commits at the end of the current turn of the event loop; there is no timer to wait for.
 * @param threads that have a lane each.
 */
export function createLane(width: number, commitGroup: CommitGroup, threads = 1): Lane {
  const queue = new Queue(threads);
  let running = 0;
  let scheduled = false;
  let closed = false;
  let onDrained: (() => void)[] = [];

  async function run(group: readonly Pending[]): Promise<void> {
    running++;
    try {
      const giveUpAt = group[0]?.giveUpAt ?? 0;
      const outcomes = await commitGroup(
        group.map((pending) => pending.change),
        giveUpAt,
      );
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
    while (!queue.isEmpty && running < width) void run(queue.takeGroup());
    queue.watch();
    if (!queue.isEmpty || running > 0) return;
    for (const resolve of onDrained) resolve();
    onDrained = [];
  }

  function accept(pending: Pending): void {
    queue.push(pending);
    if (running >= width) queue.watch();
    else if (!scheduled) setImmediate(start);
    scheduled = true;
  }

  return {
    commit: (change) =>
      new Promise((resolve, reject) => {
        if (closed) throw unavailable('the store is closed');
        const flat = flatten(change);
        const giveUpAt = monotonicMs() + waitMsMax;
        accept({ change: flat, weight: weightOf(flat), giveUpAt, resolve, reject });
      }),
    close: async () => {
      closed = true;
      if (queue.isEmpty && running === 0) return;
      await new Promise<void>((resolve) => onDrained.push(resolve));
    },
  };
}
