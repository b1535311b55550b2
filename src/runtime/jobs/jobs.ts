/** The jobs: what is done at fixed intervals, one row each. */

import {
  type ActivityRecording,
  recordActivity,
  recordedEveryMs,
} from '../../access/activity/recording.ts';
import { writeCheckpoints } from '../../audit/checkpoints.ts';
import { removeExpiredLogs } from '../../audit/retention.ts';
import { hour, minute } from '../../base/clock.ts';
import type { WaitingRuns } from '../../reactors/calls/waiting-runs.ts';
import { expiringJobs } from './expire.ts';
import { followRootKey, type RootKeyTools } from './follow-root-key.ts';
import { indexLogs } from './index-logs.ts';
import { removeTenants } from './purge.ts';
import { type RecountTools, recountBytes } from './recount-bytes.ts';
import { removeEvents } from './remove-events.ts';
import { type DataKeyAges, renewAgedKeys } from './renew-aged-keys.ts';
import { type KeyRotationTools, rotateTenantKeys } from './rotate-keys.ts';
import { runReactors } from './run-reactors.ts';
import type { Job } from './runner.ts';
import { scrubStore } from './scrub.ts';
import { signUnnotedLogs } from './sign-unnoted-logs.ts';

/** The job that signs a checkpoint of every log that has grown. */
export const checkpointJob = 'sign log checkpoints';

const checkpointsEveryMsDefault = 15 * minute;

/** What all jobs together use. */
type KeyUsingTools = RecountTools & KeyRotationTools;

export function jobsOf(
  tools:
    | KeyUsingTools
    | (KeyUsingTools & RootKeyTools)
    | (KeyUsingTools & RootKeyTools & Pick<ActivityRecording, 'activity'>),
  checkpointsEveryMs: number = checkpointsEveryMsDefault,
  reactorRuns?: WaitingRuns,
  keyAges?: DataKeyAges,
): readonly Job[] {
  return [
    ...('roots' in tools ? [followRootKey(tools)] : []),
    ...(reactorRuns ? [runReactors(reactorRuns, tools.store.epochs)] : []),
    rotateTenantKeys(tools),
    renewAgedKeys(tools, keyAges),
    ...expiringJobs(tools),
    {
      name: checkpointJob,
      everyMs: checkpointsEveryMs,
      run: (stopping) => writeCheckpoints(tools, stopping),
    },
    signUnnotedLogs(tools),
    ...('activity' in tools ? [recordingActivity(tools)] : []),
    indexLogs(tools),
    {
      name: 'remove old logs',
      everyMs: hour,
      run: (stopping) => removeExpiredLogs(tools, stopping),
    },
    {
      name: 'remove deleted tenants',
      everyMs: 10 * minute,
      run: (stopping) => removeTenants(tools, stopping),
    },
    {
      name: 'remove old events',
      everyMs: hour,
      run: (stopping) => removeEvents(tools, stopping),
    },
    recountBytes(tools),
    {
      name: 'scrub the store',
      everyMs: 5 * minute,
      run: (stopping) => scrubStore(tools, stopping),
    },
  ];
}

/** What callers did since the last run, as reports show it. */
function recordingActivity(tools: ActivityRecording): Job {
  return {
    name: 'record activity',
    everyMs: recordedEveryMs,
    run: async () => {
      await recordActivity(tools);
      // A line of the log each half minute would say nothing.
      return 0;
    },
  };
}
