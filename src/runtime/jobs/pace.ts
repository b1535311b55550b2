/** The pace of jobs: how much of the store they take, and when they leave it to requests. */
import { setTimeout as timeout } from 'node:timers/promises';

/** Fast enough for 25 million rows within the hour, and a third of what an idle store can do. */
export const rowsPerSecondMax = 7_000;

/**
 * Rows in one commit. Requests that are committed at the same time wait for it, so it has few rows, and
 * more only where commits are too slow to keep that rate with few.
 */
export const batchMin = 100;
export const batchMax = 250;

/** A multiple of the time that a step took: a slow or busy store gets longer rests. */
export const restShareMin = 0.2;

export interface Timer {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Resolves after that time, and at once when the vault stops. */
  pause(ms: number, stopping: AbortSignal): Promise<void>;
}

export const systemTimer: Timer = {
  now: () => performance.now(),
  // It only ever ends early, and with an error, when the vault stops.
  pause: (ms, signal) => timeout(ms, undefined, { signal }).catch(() => undefined),
};

export interface PaceStep {
  /** Processed in one commit. */
  readonly rows: number;
  readonly tookMs: number;
}

/** The rest of a job after a step, in milliseconds. */
export function restMs({ rows, tookMs }: PaceStep, restShare = restShareMin): number {
  return Math.max((rows / rowsPerSecondMax) * 1000 - tookMs, tookMs * restShare);
}

/** The number of rows for the next step, by the time that the last one took. */
export function batchAfter(tookMs: number): number {
  const rows = Math.ceil((tookMs / 1000) * rowsPerSecondMax);
  return Math.min(Math.max(rows, batchMin), batchMax);
}

/** For one run of a job. */
export interface Pace {
  /** Rows that the next step may take. */
  readonly batch: number;
  /** Awaited after each step, with the number of rows it has processed. */
  rest(rows: number): Promise<void>;
}

/** How much a job may take, where nothing waits for its end. */
export interface PaceLimits {
  /** Of the time that a step took. */
  readonly restShare: number;
  readonly batchMax: number;
}

export function createPace(
  stopping: AbortSignal,
  timer: Timer = systemTimer,
  limits: PaceLimits = { restShare: restShareMin, batchMax },
): Pace {
  let began = timer.now();
  let batch = batchMin;
  return {
    get batch() {
      return batch;
    },
    rest: async (rows) => {
      const tookMs = timer.now() - began;
      batch = Math.min(batchAfter(tookMs), limits.batchMax);
      await timer.pause(restMs({ rows, tookMs }, limits.restShare), stopping);
      began = timer.now();
    },
  };
}
