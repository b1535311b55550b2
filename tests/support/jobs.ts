/** Jobs run by hand, at the time of a vault's own clock. */
import { jobsOf } from '../../src/jobs/jobs.ts';
import type { TestVault } from './vault.ts';

/** Runs one job once, to its end, and gives how many things it did. */
export function runJob(vault: TestVault, name: string): Promise<number> {
  const job = jobsOf(vault.running.vault).find((one) => one.name === name);
  if (job === undefined) throw new Error(`there is no job ${name}`);
  return job.run(new AbortController().signal);
}
