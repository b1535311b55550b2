/** One answering thread, from the side of the process. */
import { Worker } from 'node:worker_threads';
import type { Counts } from '../lib/telemetry/metrics.ts';
import { createLine, type Line } from './line.ts';
import type { ProcessCalls, ThreadCalls } from './messages.ts';

export interface AnsweringThread {
  readonly line: Line<ThreadCalls>;
  /** What it had counted when it was last asked. */
  counts: Counts;
  /** Resolves when it has ended, with the error that ended it where there was one. */
  readonly ended: Promise<unknown>;
  terminate(): Promise<unknown>;
}

const threadFile = new URL(`./thread${import.meta.url.slice(-3)}`, import.meta.url);

/** @param serve makes what the thread may ask for, and frees what it holds when it has ended. */
export function startThread(serve: (ended: Promise<unknown>) => ProcessCalls): AnsweringThread {
  const worker = new Worker(threadFile, { name: 'answering' });
  let failure: unknown = new Error('the answering thread ended');
  worker.on('error', (error) => {
    failure = error;
  });
  const ended = new Promise<unknown>((resolve) => {
    worker.on('exit', () => resolve(failure));
  });
  const line = createLine<ThreadCalls, ProcessCalls>(worker, serve(ended));
  void ended.then(() => line.end(failure instanceof Error ? failure : new Error('it failed')));
  return { line, counts: [], ended, terminate: () => worker.terminate() };
}
