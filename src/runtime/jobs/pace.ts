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

export function createPace(stopping: AbortSignal, timer: Timer = systemTimer): Pace {
  let began = timer.now();
  let batch = batchMin;
  return {
    get batch() {
      return batch;
    },
    rest: async (rows) => {
      const tookMs = timer.now() - began;
      batch = batchAfter(tookMs);
      await timer.pause(restMs({ rows, tookMs }), stopping);
      began = timer.now();
    },
  };
}

/** Rows in a commit beside requests, whose own commits wait for it. */
export const gentleBatch = 8;

/** A multiple of the time that a step beside requests took. The figures are in ADR 31. */
export const gentleRestShare = 9;

/** For so long after a commit of others they are expected to commit more. */
const expectedMs = 2_000;

export interface GentlePaceOptions {
  readonly stopping: AbortSignal;
  readonly timer: Timer;
  /** A number that differs after each commit of this process. */
  readonly commits: () => number;
}

/**
 * The pace of a job whose end nothing waits for. It rests for at least as long as it works. What is committed in a rest
 * was committed for others: beside them a step is small and its rest long, and alone it is large, because a commit
 * costs as much processor time as some 20 rows.
 */
export function createGentlePace({ stopping, timer, commits }: GentlePaceOptions): Pace {
  let began = timer.now();
  let othersAt = Number.NEGATIVE_INFINITY;
  let batch = gentleBatch;
  const isBeside = () => began - othersAt < expectedMs;
  return {
    get batch() {
      return batch;
    },
    rest: async (rows) => {
      const tookMs = timer.now() - began;
      const before = commits();
      const share = isBeside() ? gentleRestShare : 1;
      await timer.pause(restMs({ rows, tookMs }, share), stopping);
      began = timer.now();
      if (commits() !== before) othersAt = began;
      batch = isBeside() ? gentleBatch : batchMax;
    },
  };
}
