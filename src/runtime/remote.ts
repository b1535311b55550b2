/** The process as a request thread sees it: a store of its own, and the rest by remote calls. */

import { createActivityCounter } from '../access/activity/counting.ts';
import type { AdjustableAttempts, FailureLimit } from '../access/failure-limit.ts';
import { createWatch } from '../access/watch/watch.ts';
import { countingRefusals } from '../audit/refusals.ts';
import { second, systemClock } from '../base/clock.ts';
import { createEpochs } from '../base/epochs.ts';
import { SharedClock } from '../base/shared-clock.ts';
import type { Log, LogFields } from '../base/telemetry/log.ts';
import { createThreadMetrics, type ThreadMetrics } from '../base/telemetry/thread-metrics.ts';
import type { ThreadRpc } from '../base/thread-rpc.ts';
import { processBudget } from '../reactors/sandbox/process-budget.ts';
import { alertingQuarantine } from '../rules/quarantine.ts';
import type { ChainedEntry } from '../store/log-chain/entries.ts';
import type { StoreWith } from './commit-steps.ts';
import type { ProcessCalls, ThreadData } from './messages.ts';
import { attachVault } from './open-vault.ts';
import { remoteVaultKeys } from './remote-vault-keys.ts';
import type { RequestWorkerTools } from './request-worker.ts';

/** Often enough for the process, which records it. */
const activityEveryMs = 5 * second;

type ProcessRpc = ThreadRpc<ProcessCalls>;

export interface Remote extends RequestWorkerTools {
  readonly counts: ThreadMetrics['counts'];
  /** Finishes what was accepted to be committed. */
  close(): Promise<void>;
}

export async function openRemote(rpc: ProcessRpc, data: ThreadData): Promise<Remote> {
  const { config } = data;
  const { counts, ...counted } = createThreadMetrics();
  const clock = data.clock ? new SharedClock(data.clock) : systemClock;
  const log = remoteLog(rpc);
  const quarantine = alertingQuarantine({ metrics: counted, log, clock });
  const vault = await attachVault(config, {
    vaultKeys: remoteVaultKeys(rpc, data.vaultName),
    clock,
    quarantine,
    epochs: createEpochs(data.epochs),
    threads: config.threads,
    onGroup: counted.group,
    onNoted: (note) => rpc.notify('takeNote', note),
    // Without an export they are not needed, and sending them costs a tenth of making them.
    ...(config.logExport !== undefined && {
      onCommitted: (entries: readonly ChainedEntry[]) => rpc.notify('takeEntries', entries),
    }),
    owner: {
      writerPort: () => rpc.call('writerPort', undefined),
      ping: () => rpc.call('ping', undefined),
      limiter: (limit) => ({
        count: (key, times) => rpc.call('countRequests', { limit, key, times }),
        take: (key, wanted) => rpc.call('takeRequests', { limit, key, wanted }),
        giveBack: (key, given) => rpc.call('giveRequestsBack', { limit, key, given }),
      }),
    },
  });
  vault.store.subscribe(({ insert }) => {
    if (insert?.checkpoints) rpc.notify('takeCheckpoints', insert.checkpoints);
  });
  counted.watchStore(vault.store.state);
  const countRefusals = countingRefusals((refused) => rpc.call('logRefusals', refused));
  const activity = createActivityCounter(vault.clock);
  const sendActivity = () => {
    const taken = activity.take();
    if (taken.length > 0) rpc.notify('takeActivity', taken);
  };
  const sending = setInterval(sendActivity, activityEveryMs).unref();
  const watchUse = createWatch({ ...vault, metrics: counted, log, activity });
  const storeWith: StoreWith = (steps) => vault.storeWith({ countRefusals, watchUse, ...steps });
  return {
    ...vault,
    close: async () => {
      clearInterval(sending);
      sendActivity();
      await vault.close();
    },
    activity,
    isolation: data.isolation,
    processes: processBudget(data.budget.memory, data.budget.thread),
    store: storeWith({}),
    storeWith,
    log,
    metrics: { ...counted, expose: () => rpc.call('exposeMetrics', undefined) },
    counts,
    shared: {
      attempts: remoteAttempts(rpc, config.rateLimits.failedAuthentication),
      onFailedAuthentication: (...failed) => rpc.call('logFailedAuthentication', failed),
      pageEnds: {
        get: (page) => rpc.call('pageEnd', page),
        set: (page, position) => rpc.call('setPageEnd', { page, position }),
      },
    },
  };
}

function remoteLog(rpc: ProcessRpc): Log {
  const at = (level: keyof Log) => (message: string, fields?: LogFields) =>
    rpc.notify('log', { level, message, fields });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** The process counts; where nothing is counted, it is not asked. */
function remoteAttempts(rpc: ProcessRpc, limit: FailureLimit | undefined): AdjustableAttempts {
  let isLimited = limit !== undefined;
  return {
    setLimit: (next) => {
      isLimited = next !== undefined;
    },
    count: async (address) => {
      if (isLimited) await rpc.call('countFailedAttempt', address);
    },
    lookUp: async (address, task) => {
      if (!isLimited) return task();
      const lookUp = await rpc.call('beginLookUp', address);
      try {
        return await task();
      } finally {
        rpc.notify('endLookUp', lookUp);
      }
    },
  };
}
