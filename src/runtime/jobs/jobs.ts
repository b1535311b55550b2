/** The jobs: what is done at fixed intervals, one row each. */

import { writeCheckpoints } from '../../audit/checkpoints.ts';
import { removeExpiredLogs } from '../../audit/retention.ts';
import { hour, minute } from '../../base/clock.ts';
import type { WaitingRuns } from '../../reactors/calls/waiting-runs.ts';
import type { JobTools } from './batches.ts';
import { expireClientKeys } from './expire-client-keys.ts';
import { expireCodes } from './expire-codes.ts';
import { expireReactorRuns } from './expire-reactor-runs.ts';
import { expireSessions } from './expire-sessions.ts';
import { expireIntentCodes, expireTokenIntents } from './expire-token-intents.ts';
import { expireTokens } from './expire-tokens.ts';
import { followRootKey, type RootKeyTools } from './follow-root-key.ts';
import { forgetReplies } from './forget-replies.ts';
import { removeTenants } from './purge.ts';
import { removeEvents } from './remove-events.ts';
import { runReactors } from './run-reactors.ts';
import type { Job } from './runner.ts';
import { scrubStore } from './scrub.ts';
import { signUnnotedLogs } from './sign-unnoted-logs.ts';

/** The job that signs a checkpoint of every log that has grown. */
export const checkpointJob = 'sign log checkpoints';

const checkpointsEveryMsDefault = 15 * minute;

/** What is gone for readers is off the disk within the hour: the waiting times here add up to far less. */
export function jobsOf(
  tools: JobTools | RootKeyTools,
  checkpointsEveryMs: number = checkpointsEveryMsDefault,
  reactorRuns?: WaitingRuns,
): readonly Job[] {
  return [
    ...('roots' in tools ? [followRootKey(tools)] : []),
    ...(reactorRuns ? [runReactors(reactorRuns, tools.store.epochs)] : []),
    {
      name: 'expire tokens',
      everyMs: minute,
      run: (stopping) => expireTokens(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'expire card codes',
      everyMs: minute,
      run: (stopping) => expireCodes(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'expire token intents',
      everyMs: minute,
      run: (stopping) => expireTokenIntents(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'expire card codes of token intents',
      everyMs: minute,
      run: (stopping) => expireIntentCodes(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'forget replies',
      everyMs: minute,
      run: (stopping) => forgetReplies(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'remove results of reactors',
      everyMs: 10 * minute,
      run: (stopping) => expireReactorRuns(tools, stopping),
      removesExpired: true,
    },
    {
      name: checkpointJob,
      everyMs: checkpointsEveryMs,
      run: (stopping) => writeCheckpoints(tools, stopping),
    },
    signUnnotedLogs(tools),
    {
      name: 'remove old logs',
      everyMs: hour,
      run: (stopping) => removeExpiredLogs(tools, stopping),
    },
    {
      name: 'remove sessions',
      everyMs: 10 * minute,
      run: (stopping) => expireSessions(tools, stopping),
      removesExpired: true,
    },
    {
      name: 'remove expired encryption keys',
      everyMs: 10 * minute,
      run: (stopping) => expireClientKeys(tools, stopping),
      removesExpired: true,
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
    {
      name: 'scrub the store',
      everyMs: 5 * minute,
      run: (stopping) => scrubStore(tools, stopping),
    },
  ];
}
