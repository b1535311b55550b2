/** The answering threads of a process: their start, what they ask for, their replacement and their stop. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { finishMsMax } from '../http/transport.ts';
import { second, systemClock } from '../lib/clock.ts';
import { reasonOf } from '../lib/errors.ts';
import { SharedClock } from '../lib/shared-clock.ts';
import { addCounts, type Counts } from '../lib/telemetry/thread-metrics.ts';
import type { Process } from '../process.ts';
import type { HeldAddress } from './address.ts';
import { type AnsweringThread, startThread } from './answering-thread.ts';
import type { ThreadData } from './messages.ts';
import { createSharedCalls } from './shared-calls.ts';

export interface Threads {
  /** On which all of them listen. */
  readonly port: number;
  /** Resolves when every request that has begun is answered. */
  close(): Promise<void>;
}

/** A thread that does not say what it counted by then is shown as it was. */
const countsMsMax = second;

/** Between attempts to replace a thread. */
const retryMs = second;

/** How long a thread may take to stop: besides what its requests may take, for what waits to be committed. */
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
  const data = dataOf(process, config, requestTimeoutMs);
  const shared = createSharedCalls(process);
  const running = new Set<AnsweringThread>();
  const stopping = new AbortController();
  /** What threads that ended had counted. */
  let ended: Counts = [];

  /** Prepared, not yet listening. */
  async function start(): Promise<AnsweringThread> {
    const thread = startThread(shared);
    running.add(thread);
    void thread.ended.then(() => running.delete(thread));
    await thread.line.call('prepare', data);
    return thread;
  }

  /** Until the process stops there is a thread in its place. */
  async function keep(first: AnsweringThread, port: number): Promise<void> {
    for (let thread: AnsweringThread | undefined = first; thread; ) {
      const reason = reasonOf(await thread.ended);
      ended = await addCounts([ended, thread.counts]);
      if (stopping.signal.aborted) return;
      metrics.count('thread_restarts');
      log.error('an answering thread ended and is replaced', { reason });
      thread = await replacement(port);
    }
  }

  async function replacement(port: number): Promise<AnsweringThread | undefined> {
    while (!stopping.signal.aborted) {
      let thread: AnsweringThread | undefined;
      try {
        thread = await start();
        await thread.line.call('listen', port);
        return thread;
      } catch (error) {
        await thread?.terminate();
        if (stopping.signal.aborted) return undefined;
        log.error('an answering thread cannot be replaced yet', { reason: reasonOf(error) });
        await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async function close(): Promise<void> {
    stopping.abort();
    await Promise.all(
      [...running].map(async (thread) => {
        const stopped = thread.line.call('stop', undefined).catch(() => undefined);
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
    const port = await first.line.call('listen', config.port);
    await Promise.all(others.map(({ line }) => line.call('listen', port)));
    metrics.add(async () => [ended, ...(await Promise.all([...running].map(countsOf)))]);
    for (const thread of threads) void keep(thread, port);
    return { port, close };
  } catch (error) {
    stopping.abort();
    await Promise.all([...running].map((thread) => thread.terminate()));
    throw error;
  }
}

function dataOf(
  { rootKey, clock, store }: Process,
  config: Config,
  requestTimeoutMs: number | undefined,
): ThreadData {
  const memory = clock instanceof SharedClock ? clock.memory : undefined;
  assert(memory || clock === systemClock, 'threads share no other clock');
  // What only the process needs stays there: what opens the vault, and what does not cross.
  const { rootKey: _key, bootstrap: _bootstrap, checkpointSink: _sink, ...rest } = config;
  return { config: rest, rootKey, epochs: store.epochs.memory, clock: memory, requestTimeoutMs };
}

async function countsOf(thread: AnsweringThread): Promise<Counts> {
  const late = pause(countsMsMax, undefined, { ref: false });
  const counts = thread.line.call('counts', undefined).catch(() => undefined);
  thread.counts = (await Promise.race([counts, late])) ?? thread.counts;
  return thread.counts;
}
