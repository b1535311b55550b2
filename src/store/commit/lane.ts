/** A lane: turns the changes of concurrent requests into groups, one commit each. */
import { AsyncLocalStorage } from 'node:async_hooks';

import type { Backlog, OnGroup } from '../../base/telemetry/store-work.ts';
import {
  type Bookkeeping,
  type Change,
  type CommitOutcome,
  type FlatChange,
  flatten,
  flattenBookkeeping,
} from '../change.ts';
import type { OnCommitEnd } from '../notify-after-commit.ts';
import { unavailable } from '../unavailable.ts';
import { monotonicMs, type PendingChange, Queue, waitedMs, waitMsMax, weightOf } from './queue.ts';

/**
 * Commits all changes it is given: an outcome or an error for each, in their order.
 * @param giveUpAt by `monotonicMs`: a commit that could not begin by then does not begin.
 * @param settle may be called with the outcome of a change, by its place, while others are still committed.
 */
export type CommitGroup = (
  changes: readonly FlatChange[],
  giveUpAt: number,
  settle?: (place: number, outcome: CommitOutcome | Error) => void,
) => Promise<readonly (CommitOutcome | Error)[]>;

export interface Lane {
  /** Rejects with `overloaded` when too much waits already, with `unavailable` once closed. */
  commit(change: Change): Promise<CommitOutcome>;
  record(work: Bookkeeping): Promise<CommitOutcome>;
  readonly backlog: Backlog;
  /** Accepts nothing more, and resolves once nothing accepted is waiting. */
  close(): Promise<void>;
}

export interface LaneOptions {
  /** That have a lane each. */
  readonly threads?: number;
  readonly onGroup?: OnGroup | undefined;
  readonly onCommitEnd?: OnCommitEnd | undefined;
}

/**
 * `width` groups are under way at once; what arrives meanwhile becomes the next group. An idle lane
 * commits at the end of the current turn of the event loop; there is no timer to wait for. A group belongs to all of
 * its callers, so it runs in the context of none of them: the context of the lane's creation.
 */
export function createLane(
  width: number,
  commitGroup: CommitGroup,
  { threads = 1, onGroup, onCommitEnd = nothing }: LaneOptions = {},
): Lane {
  const queue = new Queue(threads);
  const detached = AsyncLocalStorage.snapshot();
  let running = 0;
  let scheduled = false;
  let closed = false;
  let onDrained: (() => void)[] = [];

  async function run(group: readonly PendingChange[]): Promise<void> {
    running++;
    const observe = onGroup && observing(group, onGroup);
    const settle = (place: number, outcome: CommitOutcome | Error) => group[place]?.end(outcome);
    try {
      const giveUpAt = group[0]?.giveUpAt ?? 0;
      const outcomes = await commitGroup(
        group.map((pending) => pending.change),
        giveUpAt,
        settle,
      );
      observe?.(outcomes);
      for (const [place, pending] of group.entries()) {
        pending.end(outcomes[place] ?? new Error('the engine gave no outcome'));
      }
    } catch (error) {
      observe?.([]);
      const failure = error instanceof Error ? error : new Error('the commit failed');
      for (const pending of group) pending.end(failure);
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

  function accept(pending: PendingChange): void {
    queue.push(pending);
    if (running >= width) detached(() => queue.watch());
    else if (!scheduled) detached(() => setImmediate(start));
    scheduled = true;
  }

  function wait<W extends Change | Bookkeeping>(
    caller: string,
    work: W,
    flat: (work: W) => FlatChange,
  ): Promise<CommitOutcome> {
    return new Promise((resolve, reject) => {
      const change = flat(work);
      const giveUpAt = monotonicMs() + waitMsMax;
      let isOver = false;
      const end = (outcome: CommitOutcome | Error) => {
        if (isOver) return;
        isOver = true;
        if ('entries' in work) onCommitEnd(work, outcome);
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      };
      if (closed) end(unavailable('the store is closed'));
      else accept({ caller, change, weight: weightOf(change), giveUpAt, end });
    });
  }

  return {
    get backlog() {
      return queue.backlog;
    },
    commit: (change) => wait(callerOf(change), change, flatten),
    record: (work) => wait('', work, flattenBookkeeping),
    close: async () => {
      closed = true;
      if (queue.isEmpty && running === 0) return;
      await new Promise<void>((resolve) => onDrained.push(resolve));
    },
  };
}

function nothing(): void {}

function callerOf({ entries: [{ tenant_id, actor_id }] }: Change): string {
  return `${tenant_id} ${actor_id ?? ''}`;
}

/** Begins when the group does; what it returns is called with its outcomes, or none where all of it failed. */
function observing(group: readonly PendingChange[], onGroup: OnGroup) {
  const [first] = group;
  const waited = first ? waitedMs(first) : 0;
  const begun = performance.now();
  return (outcomes: readonly (CommitOutcome | Error)[]) => {
    let [conflicts, failures] = [0, group.length - outcomes.length];
    for (const outcome of outcomes) {
      if (outcome instanceof Error) failures++;
      else if (outcome.conflict !== undefined) conflicts++;
    }
    const tookMs = performance.now() - begun;
    onGroup({ changes: group.length, conflicts, failures, waitedMs: waited, tookMs });
  };
}
