/** Jobs run by hand, at the time of a vault's own clock. */
import { jobsOf } from '../../src/runtime/jobs/jobs.ts';
import type { Timer } from '../../src/runtime/jobs/pace.ts';
import type { TestVault } from './vault.ts';

interface RunOptions {
  readonly timer?: Timer;
  readonly stopping?: AbortSignal;
}

/** Every step takes no time, and no rest does. */
const restless: Timer = { now: () => 0, pause: async () => undefined };

/** Runs one job once, to its end, and gives how many things it did. */
export function runJob(
  vault: TestVault,
  name: string,
  { timer = restless, stopping = new AbortController().signal }: RunOptions = {},
): Promise<number> {
  const job = jobsOf({ ...vault.running.vault, timer }).find((one) => one.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job.run(stopping);
}
