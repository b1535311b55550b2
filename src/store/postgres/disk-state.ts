/** Whether PostgreSQL's disk is full. The server reports that only when it happens, and never how much is free. */
import { type Clock, systemClock } from '../../base/clock.ts';

/** For so long after a full disk nothing that grows is tried, so that what is freed is there to read and delete. */
const pauseMs = 2_000;

export interface DiskState {
  isShort(): boolean;
  /** The disk was found to be full. */
  end(): void;
}

export function createDiskState(clock: Clock = systemClock): DiskState {
  let fullAt = Number.NEGATIVE_INFINITY;
  return {
    isShort: () => {
      const sinceMs = clock.now() - fullAt;
      // A clock that was set back does not extend the pause.
      return sinceMs >= 0 && sinceMs < pauseMs;
    },
    end: () => {
      fullAt = clock.now();
    },
  };
}
