/** What is known of a full disk of PostgreSQL, which says so when it is, and never how much is free. */
import { monotonicMs } from '../commit/queue.ts';

/** For so long after a full disk nothing that grows is tried, so that what is freed is there to read and delete. */
const pauseMs = 2_000;

export interface DiskState {
  isShort(): boolean;
  /** The disk was found to be full. */
  end(): void;
}

export function createDiskState(): DiskState {
  let until = Number.NEGATIVE_INFINITY;
  return {
    isShort: () => monotonicMs() < until,
    end: () => {
      until = monotonicMs() + pauseMs;
    },
  };
}
