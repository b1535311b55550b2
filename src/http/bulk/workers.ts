/** The threads that can work on an import, and how many of its parts each of them has. */
import type { Sibling, Siblings } from './siblings.ts';

/** `undefined` is this thread itself. */
export type Worker = Sibling | undefined;

export interface Workers {
  count(): number;
  /** Who has the fewest parts; this thread where nobody has fewer. */
  leastBusy(): Worker;
  /** Counts the part for as long as it is worked on. */
  has<R>(worker: Worker, part: Promise<R>): Promise<R>;
}

export function createWorkers(siblings: Siblings = () => []): Workers {
  const parts = new Map<Worker, number>();
  const partsOf = (worker: Worker) => parts.get(worker) ?? 0;
  return {
    count: () => 1 + siblings().length,
    leastBusy: () => {
      let least: Worker;
      for (const sibling of siblings()) {
        if (partsOf(sibling) < partsOf(least)) least = sibling;
      }
      return least;
    },
    has: (worker, part) => {
      parts.set(worker, partsOf(worker) + 1);
      return part.finally(() => parts.set(worker, partsOf(worker) - 1));
    },
  };
}
