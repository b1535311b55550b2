/** Running jobs: each again and again, one run at a time, until the vault stops. */
import { setTimeout as timeout } from 'node:timers/promises';
import { reasonOf } from '../../base/errors.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { failurePauses } from '../../queue/lanes.ts';

/** Work that is due at some time, without a request. Several servers may run it at once. */
export interface Job {
  readonly name: string;
  /** From the end of one run to the beginning of the next. */
  readonly everyMs: number;
  /** Resolves to the number of items done. After `stopping`, it ends with the current step. */
  readonly run: (stopping: AbortSignal) => Promise<number>;
  /** Takes off the disk what is gone for readers. */
  readonly removesExpired?: true;
}

export interface RunningJobs {
  /** Resolves once no job is under way any more. */
  stop(): Promise<void>;
}

/** Resolves after the time, or as soon as the vault stops. */
export type JobPause = (milliseconds: number, stopping: AbortSignal) => Promise<void>;

export interface RunnerOptions {
  /** Passes the time between two runs, by the machine's timers unless given. */
  readonly pause?: JobPause | undefined;
  /** Called for each run that failed. */
  readonly onFailure?: (error: unknown) => void;
  /** Called for each run that did not fail, with the name of the job. */
  readonly onSuccess?: (job: string) => void;
}

/**
 * Each job runs at once, for what became due while no server was up, and from then on by its time. After a failure, a
 * job that runs often rests as the lanes of queues do.
 */
export function startJobs(
  jobs: readonly Job[],
  log: Log,
  { pause = pauseByTimer, ...reported }: RunnerOptions = {},
): RunningJobs {
  const stopping = new AbortController();
  const reporting = { log, ...reported };
  const loops = jobs.map(async (job) => {
    const failurePause = createGrowingPause(failurePauses);
    while (!stopping.signal.aborted) {
      const hasSucceeded = await runOnce(job, reporting, stopping.signal);
      if (hasSucceeded) failurePause.reset();
      const restMs = hasSucceeded ? 0 : failurePause.next();
      await pause(Math.max(job.everyMs, restMs), stopping.signal);
    }
  });
  return {
    stop: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

const ignore = () => undefined;

interface Reporting extends Pick<RunnerOptions, 'onFailure' | 'onSuccess'> {
  readonly log: Log;
}

async function pauseByTimer(milliseconds: number, stopping: AbortSignal): Promise<void> {
  // Ends early, with an error, when the vault stops.
  await timeout(milliseconds, undefined, { ref: false, signal: stopping }).catch(() => undefined);
}

/**
 * A failure is logged for the operator; what was not done is still due at the next run.
 * @returns false after a failure.
 */
export async function runOnce(
  job: Job,
  { log, onFailure = ignore, onSuccess = ignore }: Reporting,
  stopping: AbortSignal = new AbortController().signal,
): Promise<boolean> {
  try {
    const count = await job.run(stopping);
    onSuccess(job.name);
    if (count > 0) log.info('a job did its work', { job: job.name, count });
    return true;
  } catch (error) {
    onFailure(error);
    log.error('a job failed and will be tried again', { job: job.name, reason: reasonOf(error) });
    return false;
  }
}
