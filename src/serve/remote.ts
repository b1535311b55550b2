/** The process as an answering thread sees it: a store of its own, and the rest over the line. */

import type { AnsweringTools } from '../answering.ts';
import { type FailedAttempts, unlimitedAttempts } from '../gate/failure-limit.ts';
import { systemClock } from '../lib/clock.ts';
import { createEpochs } from '../lib/epochs.ts';
import type { ChainedEntry } from '../lib/log-chain/entries.ts';
import { SharedClock } from '../lib/shared-clock.ts';
import type { Log, LogFields } from '../lib/telemetry/log.ts';
import { createThreadMetrics, type ThreadMetrics } from '../lib/telemetry/thread-metrics.ts';
import { attachVault } from '../open-vault.ts';
import { countingRefusals } from '../vault/logs/refusals.ts';
import type { Line } from './line.ts';
import type { ProcessCalls, ThreadData } from './messages.ts';

type ProcessLine = Line<ProcessCalls>;

export interface Remote extends AnsweringTools {
  readonly counts: ThreadMetrics['counts'];
  /** Finishes what was accepted to be committed. */
  close(): Promise<void>;
}

export async function openRemote(line: ProcessLine, data: ThreadData): Promise<Remote> {
  const { config, rootKey } = data;
  const { counts, ...counted } = createThreadMetrics();
  const vault = await attachVault(config, {
    rootKey,
    clock: data.clock ? new SharedClock(data.clock) : systemClock,
    epochs: createEpochs(data.epochs),
    threads: config.threads,
    onGroup: counted.group,
    onNoted: (note) => line.notify('takeNote', note),
    // Without an export nobody takes them, and they cost as much as a tenth of what makes them.
    ...(config.logExport !== undefined && {
      onCommitted: (entries: readonly ChainedEntry[]) => line.notify('takeEntries', entries),
    }),
    owner: {
      writerPort: () => line.call('writerPort', undefined),
      ping: () => line.call('ping', undefined),
      limiter: (limit) => ({
        count: (key, times) => line.call('countRequests', { limit, key, times }),
      }),
    },
  });
  vault.store.subscribe(({ insert }) => {
    if (insert?.checkpoints) line.notify('takeCheckpoints', insert.checkpoints);
  });
  counted.watchStore(vault.store.state);
  const isLimited = config.rateLimits.failedAuthentication !== undefined;
  return {
    ...vault,
    isolation: data.isolation,
    store: countingRefusals(vault.store, (refused) => line.call('logRefusals', refused)),
    log: remoteLog(line),
    metrics: { ...counted, expose: () => line.call('exposeMetrics', undefined) },
    counts,
    shared: {
      attempts: isLimited ? remoteAttempts(line) : unlimitedAttempts,
      onFailedAuthentication: (...failed) => line.call('logFailedAuthentication', failed),
      pageEnds: {
        get: (page) => line.call('pageEnd', page),
        set: (page, position) => line.call('setPageEnd', { page, position }),
      },
    },
  };
}

function remoteLog(line: ProcessLine): Log {
  const at = (level: keyof Log) => (message: string, fields?: LogFields) =>
    line.notify('log', { level, message, fields });
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function remoteAttempts(line: ProcessLine): FailedAttempts {
  return {
    count: (address) => line.call('countFailedAttempt', address),
    lookUp: async (address, task) => {
      const lookUp = await line.call('beginLookUp', address);
      try {
        return await task();
      } finally {
        line.notify('endLookUp', lookUp);
      }
    },
  };
}
