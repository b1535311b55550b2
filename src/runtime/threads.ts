/** The request threads of a process: how they start, what they request, and how they are replaced and stopped. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { second } from '../base/clock.ts';
import { reasonOf } from '../base/errors.ts';
import { addCounts, type Counts } from '../base/telemetry/thread-metrics.ts';
import { finishMsMax } from '../http/transport.ts';
import { endBudgetOf } from '../reactors/sandbox/process-budget.ts';
import type { HeldAddress } from './address.ts';
import { countsOf, startThread, type Thread } from './child-thread.ts';
import type { Config } from './config/config.ts';
import { ConfigError } from './config/problems.ts';
import type { Process } from './process.ts';
import type { WorkerReloadable } from './request-worker.ts';
import { createSharedCalls } from './shared-calls.ts';
import { threadDataOf } from './thread-data.ts';

export interface Threads {
  /** On which all of them listen. */
  readonly port: number;
  /**
   * Uses these settings from now on, also on threads that start later.
   * @throws ConfigError, before anything has changed, where they cannot be used.
   */
  apply(settings: WorkerReloadable): Promise<void>;
  /** Resolves when every thread that serves requests has responded. */
  respond(): Promise<void>;
  /** Resolves when every request that has begun has its response. */
  close(): Promise<void>;
}

/** Between attempts to replace a thread. */
const retryMs = second;

/** The time that a thread has to stop, for commits that wait, in addition to the time of its requests. */
const stopMsMax = finishMsMax + 2 * second;

interface Options {
  readonly address: HeldAddress;
  readonly requestTimeoutMs?: number | undefined;
}

/** Rejects with what the first thread that could not start failed with; none is left then. */
export async function startThreads(
  process: Process,
  config: Config,
  { address, requestTimeoutMs }: Options,
): Promise<Threads> {
  const { log, metrics } = process;
  let data = threadDataOf(process, config, requestTimeoutMs);
  const shared = createSharedCalls(process);
  const running = new Set<Thread>();
  /** The running threads that are connected to each other. */
  const met = new Set<Thread>();
  /** Numbers of threads that run; the process itself has 0. */
  const numbers = new Set<number>();
  const stopping = new AbortController();
  /** The counters of threads that ended. */
  let ended: Counts = [];

  /** Prepared, not yet listening. */
  async function start(): Promise<Thread> {
    const thread = startThread('request', shared);
    running.add(thread);
    const number = firstFree(numbers);
    numbers.add(number);
    const { memory } = data.budget;
    void thread.ended.then(() => {
      running.delete(thread);
      met.delete(thread);
      endBudgetOf(memory, number);
      numbers.delete(number);
    });
    await thread.rpc.call('prepare', { ...data, budget: { memory, thread: number } });
    for (const other of met) introduce(thread, other);
    met.add(thread);
    return thread;
  }

  /** Until the process stops there is a thread in its place. */
  async function keep(first: Thread, port: number): Promise<void> {
    for (let thread: Thread | undefined = first; thread; ) {
      const reason = reasonOf(await thread.ended);
      ended = await addCounts([ended, thread.counts]);
      if (stopping.signal.aborted) return;
      metrics.count('thread_restarts');
      log.error('a request thread ended and is replaced', { reason });
      thread = await replacement(port);
    }
  }

  async function replacement(port: number): Promise<Thread | undefined> {
    while (!stopping.signal.aborted) {
      let thread: Thread | undefined;
      try {
        thread = await start();
        await thread.rpc.call('listen', port);
        return thread;
      } catch (error) {
        await thread?.terminate();
        if (stopping.signal.aborted) return undefined;
        log.error('a request thread cannot be replaced yet', { reason: reasonOf(error) });
        await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async function apply(given: WorkerReloadable): Promise<void> {
    const { tls, rateLimits, trustedProxies, roleRules } = given;
    const before = data;
    const settings = { tls, rateLimits, trustedProxies, roleRules };
    data = { ...data, config: { ...data.config, ...settings } };
    // A thread that ends meanwhile is replaced by one that is made of them.
    const results = await Promise.allSettled(
      [...running].map(({ rpc }) => rpc.call('apply', settings)),
    );
    // All threads find the same problems.
    for (const result of results) {
      if (result.status === 'rejected' || result.value.problems.length === 0) continue;
      data = before;
      throw new ConfigError(result.value.problems);
    }
  }

  async function respond(): Promise<void> {
    await Promise.all([...met].map(({ rpc }) => rpc.call('counts', undefined)));
  }

  async function close(): Promise<void> {
    stopping.abort();
    await Promise.all(
      [...running].map(async (thread) => {
        const stopped = thread.rpc.call('stop', undefined).catch(() => undefined);
        await Promise.race([stopped, thread.ended, pause(stopMsMax, undefined, { ref: false })]);
        await thread.terminate();
      }),
    );
  }

  try {
    const threads = await Promise.all(Array.from({ length: config.threads }, start));
    const [first, ...others] = threads;
    assert(first, 'there is a thread at least');
    await address.release();
    const port = await first.rpc.call('listen', config.port);
    await Promise.all(others.map(({ rpc }) => rpc.call('listen', port)));
    metrics.add(async () => [ended, ...(await Promise.all([...running].map(countsOf)))]);
    for (const thread of threads) void keep(thread, port);
    return { port, apply, respond, close };
  } catch (error) {
    stopping.abort();
    await Promise.all([...running].map((thread) => thread.terminate()));
    throw error;
  }
}

function firstFree(taken: ReadonlySet<number>): number {
  let number = 1;
  while (taken.has(number)) number += 1;
  return number;
}

/** Gives each a way to the other. */
function introduce(one: Thread, other: Thread): void {
  const { port1, port2 } = new MessageChannel();
  one.rpc.notify('addSibling', port1);
  other.rpc.notify('addSibling', port2);
}
