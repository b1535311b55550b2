/** One thread of the process, from its side: a thread that serves requests, or the thread that delivers events. */
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { second } from '../base/clock.ts';
import { type EntryPoint, entryPointUrl } from '../base/installation/entry-points.ts';
import type { Counts } from '../base/telemetry/metrics.ts';
import { createThreadRpc, type ThreadRpc } from '../base/thread-rpc.ts';
import type { ProcessCalls, ThreadCalls } from './messages.ts';

export interface Thread {
  readonly rpc: ThreadRpc<ThreadCalls>;
  /** Its counters at the last request for them. */
  counts: Counts;
  /** Resolves when it has ended, with the error that ended it where there was one. */
  readonly ended: Promise<unknown>;
  terminate(): Promise<unknown>;
}

const files = {
  request: 'runtime/request-thread',
  delivering: 'runtime/delivering-thread',
} as const satisfies Record<string, EntryPoint>;

type ThreadName = keyof typeof files;

/** @param serve makes what the thread may ask for, and frees what it holds when it has ended. */
export function startThread(
  name: ThreadName,
  serve: (ended: Promise<unknown>) => ProcessCalls,
): Thread {
  const worker = new Worker(entryPointUrl(files[name]), { name });
  let failure: unknown = new Error(`the ${name} thread ended`);
  worker.on('error', (error) => {
    failure = error;
  });
  const ended = new Promise<unknown>((resolve) => {
    worker.on('exit', () => resolve(failure));
  });
  const rpc = createThreadRpc<ThreadCalls, ProcessCalls>(worker, serve(ended));
  void ended.then(() => rpc.end(failure instanceof Error ? failure : new Error('it failed')));
  return { rpc, counts: [], ended, terminate: () => worker.terminate() };
}

/** The timeout for fetching a thread's counts. After it, the previous counts are shown. */
const countsMsMax = second;

export async function countsOf(thread: Thread): Promise<Counts> {
  const late = pause(countsMsMax, undefined, { ref: false });
  const counts = thread.rpc.call('counts', undefined).catch(() => undefined);
  thread.counts = (await Promise.race([counts, late])) ?? thread.counts;
  return thread.counts;
}
