/** The threads that can work on an import, and which of them is given its next part. */
import type { Sibling, Siblings } from './siblings.ts';

/** `undefined` is this thread itself. */
export type Worker = Sibling | undefined;

/** Parts of one import that a thread has: while one becomes durable the next is decided. */
const partsOfEach = 2;

export interface Workers {
  /** How many parts all of them may have. */
  partsMax(): number;
  /** Resolves when one of them may be given a part. */
  untilFree(): Promise<void>;
  /** The thread with the fewest parts, over all imports; on a tie, this thread. */
  leastBusy(): Worker;
  /** Counts the part for as long as it is worked on. */
  has<R>(worker: Worker, part: Promise<R>): Promise<R>;
}

export function createWorkers(siblings: Siblings | undefined): Workers {
  const others = () => siblings?.all() ?? [];
  const parts = new Map<Worker, number>();
  const partsOf = (worker: Worker) => parts.get(worker) ?? 0;
  let changed = Promise.withResolvers<void>();

  /** A thread that is full of this import is as good as endlessly busy. */
  function loadOf(worker: Worker): number {
    if (partsOf(worker) >= partsOfEach) return Number.POSITIVE_INFINITY;
    // A part that is on its way is not in the load of the other thread yet.
    return Math.max(partsOf(worker), (worker ?? siblings)?.load.now() ?? 0);
  }

  function leastBusy(): Worker {
    let least: Worker;
    for (const other of others()) if (loadOf(other) < loadOf(least)) least = other;
    return least;
  }

  return {
    partsMax: () => partsOfEach * (1 + others().length),
    untilFree: async () => {
      while (loadOf(leastBusy()) === Number.POSITIVE_INFINITY) await changed.promise;
    },
    leastBusy,
    has: async (worker, part) => {
      parts.set(worker, partsOf(worker) + 1);
      if (!worker) siblings?.load.add(1);
      try {
        return await part;
      } finally {
        if (!worker) siblings?.load.add(-1);
        parts.set(worker, partsOf(worker) - 1);
        changed.resolve();
        changed = Promise.withResolvers();
      }
    },
  };
}
