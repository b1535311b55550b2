/** Running jobs: each again and again, one run at a time, until the vault stops. */
import { setTimeout as pause } from 'node:timers/promises';
import { reasonOf } from '../lib/errors.ts';
import type { Log } from '../lib/telemetry/log.ts';

/** Work that is due at some time, without a request. Several servers may run it at once. */
export interface Job {
  readonly name: string;
  /** From the end of one run to the beginning of the next. */
  readonly everyMs: number;
  /** Gives how many things were done. Asked to stop, it ends after the step under way. */
  readonly run: (stopping: AbortSignal) => Promise<number>;
}

export interface RunningJobs {
  /** Resolves once each job has run, so that everything that became due while no server ran is done. */
  readonly caughtUp: Promise<void>;
  /** Resolves once no job is under way any more. */
  stop(): Promise<void>;
}

export interface RunnerOptions {
  /** Whether jobs run again by their time, and not only at the start. */
  readonly repeats?: boolean | undefined;
  /** Called for each run that failed. */
  readonly onFailure?: () => void;
}

/** Each job runs at once, for what became due while no server was up, and from then on by its time. */
export function startJobs(
  jobs: readonly Job[],
  log: Log,
  { repeats = true, onFailure = () => undefined }: RunnerOptions = {},
): RunningJobs {
  const stopping = new AbortController();
  const reporting = { log, onFailure };
  const firstRuns = jobs.map((job) => runOnce(job, reporting, stopping.signal));
  const loops = jobs.map(async (job, index) => {
    await firstRuns[index];
    if (repeats) await repeat(job, reporting, stopping.signal);
  });
  return {
    caughtUp: Promise.all(firstRuns).then(() => undefined),
    stop: async () => {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

interface Reporting {
  readonly log: Log;
  readonly onFailure: () => void;
}

async function repeat(job: Job, reporting: Reporting, stopping: AbortSignal): Promise<void> {
  for (;;) {
    // Ends early, with an error, when the vault stops.
    await pause(job.everyMs, undefined, { ref: false, signal: stopping }).catch(() => undefined);
    if (stopping.aborted) return;
    await runOnce(job, reporting, stopping);
  }
}

/** A failure is logged for the operator; what was not done is still due at the next run. */
async function runOnce(
  job: Job,
  { log, onFailure }: Reporting,
  stopping: AbortSignal,
): Promise<void> {
  try {
    const count = await job.run(stopping);
    if (count > 0) log.info('a job did its work', { job: job.name, count });
  } catch (error) {
    onFailure();
    log.error('a job failed and will be tried again', { job: job.name, reason: reasonOf(error) });
  }
}
