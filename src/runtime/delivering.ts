/** The delivering thread: started when there is a webhook, replaced when it dies, stopped with the process. */
import { setTimeout as pause } from 'node:timers/promises';
import { second } from '../base/clock.ts';
import { reasonOf } from '../base/errors.ts';
import { newUuid } from '../base/ids.ts';
import { createGrowingPause } from '../base/pauses.ts';
import { addCounts, type Counts } from '../base/telemetry/thread-metrics.ts';
import { anyWebhook } from '../store/event-queries/deliveries.ts';
import { countsOf, startThread, type Thread } from './child-thread.ts';
import type { Config } from './config/config.ts';
import type { Process } from './process.ts';
import { createSharedCalls } from './shared-calls.ts';
import { threadDataOf } from './thread-data.ts';

/** Without a commit of this process: for the first webhook, made by another server. */
const lookEveryMs = 10 * second;

/** Between starts of the thread: one costs a second of a processor, whether it succeeds or not. */
const startPauses = { firstMs: second, maxMs: 30 * second };

/** The stop timeout, shorter than that of the process. */
const stopMsMax = 4 * second;

/** The number of threads its store counts with: on PostgreSQL it has half of a server's connections. */
const storeShare = 4;

export interface Delivering {
  /** Resolves when nothing is being sent any more. */
  stop(): Promise<void>;
}

export function startDelivering(process: Process, config: Config): Delivering {
  const { store, log, metrics } = process;
  const stopping = new AbortController();
  const serve = createSharedCalls(process);
  // An embedded database has one server, whose next start need not wait for the lease of the one before.
  const leaseHolder = store.engine === 'sqlite' ? 'the one server' : newUuid(process.random);
  /** The counters of threads that ended. */
  let ended: Counts = [];
  let thread: Thread | undefined;

  async function hasWebhook(): Promise<boolean> {
    try {
      return (await store.select(anyWebhook)).length > 0;
    } catch {
      // Without its database there is nothing to deliver.
      return false;
    }
  }

  /** Resolves at once where a webhook exists already; false when the process stops before. */
  async function untilNeeded(): Promise<boolean> {
    while (!stopping.signal.aborted) {
      const seen = store.epochs.now('webhooks');
      if (await hasWebhook()) return !stopping.signal.aborted;
      await store.epochs.change('webhooks', seen, lookEveryMs);
    }
    return false;
  }

  async function start(): Promise<Thread> {
    const { config: shared, ...data } = threadDataOf(process, config);
    const started = startThread('delivering', serve);
    thread = started;
    const own = { ...shared, threads: storeShare };
    await started.rpc.call('prepare', { ...data, config: own, leaseHolder });
    return started;
  }

  async function run(): Promise<void> {
    if (!(await untilNeeded())) return;
    const startPause = createGrowingPause(startPauses);
    /** Why it could not start, until it does: said once. */
    let reported: string | undefined;
    while (!stopping.signal.aborted) {
      try {
        const started = await start();
        reported = undefined;
        const startedAt = performance.now();
        const reason = reasonOf(await started.ended);
        thread = undefined;
        ended = await addCounts([ended, started.counts]);
        if (stopping.signal.aborted) return;
        if (performance.now() - startedAt >= startPauses.maxMs) startPause.reset();
        metrics.count('thread_restarts');
        log.error('the thread that delivers events ended and is replaced', { reason });
      } catch (error) {
        await thread?.terminate();
        if (stopping.signal.aborted) return;
        const reason = reasonOf(error);
        if (reason !== reported) {
          log.error('the thread that delivers events cannot start yet', { reason });
        }
        reported = reason;
      }
      await pause(startPause.next(), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  metrics.add(async () => [ended, ...(thread ? [await countsOf(thread)] : [])]);
  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      store.epochs.advance('webhooks');
      const stopped = thread?.rpc.call('stop', undefined).catch(() => undefined);
      await Promise.race([stopped, pause(stopMsMax, undefined, { ref: false })]);
      await thread?.terminate();
      await running;
    },
  };
}
