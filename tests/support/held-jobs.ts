/** Jobs that run once, as a vault starts, and then wait until it stops: no test meets their next run. */
import { once } from 'node:events';
import type { JobPause } from '../../src/runtime/jobs/runner.ts';

export interface HeldJobs {
  readonly pause: JobPause;
  /** Resolves once so many jobs have had their first run. */
  ran(jobs: number): Promise<void>;
}

export function holdJobs(): HeldJobs {
  let held = 0;
  let wake = () => {};
  return {
    pause: async (_milliseconds, stopping) => {
      held++;
      wake();
      if (!stopping.aborted) await once(stopping, 'abort');
    },
    ran: async (jobs) => {
      while (held < jobs) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
