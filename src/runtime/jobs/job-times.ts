/** The times at which jobs last finished their work, which show how late the vault is without a query. */
import { type Clock, second } from '../../base/clock.ts';
import type { ProcessMetrics } from '../../base/telemetry/metrics.ts';
import { checkpointJob } from './jobs.ts';
import type { Job } from './runner.ts';

/** Shows how late the jobs are. @returns what is called after each run that did not fail. */
export function watchJobs(
  jobs: readonly Job[],
  { metrics, clock }: { readonly metrics: ProcessMetrics; readonly clock: Clock },
): (job: string) => void {
  const begun = clock.now();
  const succeeded = new Map<string, number>();
  const secondsSince = (names: readonly string[]) => {
    const oldest = Math.min(...names.map((name) => succeeded.get(name) ?? begun));
    return Math.max(0, clock.now() - oldest) / second;
  };
  const expiring = jobs.filter(({ removesExpired }) => removesExpired).map(({ name }) => name);
  metrics.watch('checkpoint_age_seconds', () => secondsSince([checkpointJob]));
  metrics.watch('expiry_lag_seconds', () => secondsSince(expiring));
  return (job) => {
    const now = clock.now();
    succeeded.set(job, now);
    metrics.jobSucceeded(job, now);
  };
}
