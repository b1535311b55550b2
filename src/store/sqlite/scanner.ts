/** Reads that go through many rows, on a thread of their own: the requests of others do not wait for them. */
import { Worker } from 'node:worker_threads';
import { entryPointUrl } from '../../base/installation/entry-points.ts';
import { createThreadRpc, type ThreadRpc } from '../../base/thread-rpc.ts';
import type { SqlValue } from '../tables.ts';
import { unavailable } from '../unavailable.ts';

export interface ScanRequest {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
  /** The snapshot to read, which was begun; the latest commit if absent. */
  readonly snapshot?: number;
}

/** Rows as lists of values, in the order of the names of their columns. */
export interface ScannedLists {
  readonly names: readonly string[];
  readonly lists: readonly (readonly SqlValue[])[];
}

/** The requests to the thread. They fail with the error of the engine. */
export interface ScanCalls {
  scan(request: ScanRequest): ScannedLists;
  beginSnapshot(snapshot: number): void;
  endSnapshot(snapshot: number): void;
}

export interface Scanner {
  /** Rejects with `unavailable` when the engine does not respond. */
  scan(request: ScanRequest): Promise<ScannedLists>;
  /** Its number stays unknown to a thread that starts later, whose scans of it fail. */
  beginSnapshot(): Promise<number>;
  endSnapshot(snapshot: number): Promise<void>;
  close(): Promise<void>;
}

/** The thread starts with the first request and, should it ever die, again with the next one. */
export function createScanner(dataDir: string): Scanner {
  let thread: ScanThread | undefined;
  let waiting = 0;
  let closed = false;
  let snapshots = 0;

  function start(): ScanThread {
    const worker = new Worker(entryPointUrl('store/sqlite/scan-thread'), { workerData: dataDir });
    worker.unref();
    const rpc = createThreadRpc<ScanCalls, Record<never, never>>(worker, {});
    const started = { worker, rpc };
    // The exit that follows reports why; nothing was changed.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (thread === started) thread = undefined;
      rpc.end(new Error('the scanning thread ended'));
    });
    return started;
  }

  async function call<N extends keyof ScanCalls>(
    name: N,
    input: Parameters<ScanCalls[N]>[0],
  ): Promise<ReturnType<ScanCalls[N]>> {
    if (closed) throw unavailable('the store is closed');
    thread ??= start();
    const { worker, rpc } = thread;
    waiting += 1;
    worker.ref();
    try {
      return (await rpc.call(name, input as never)) as ReturnType<ScanCalls[N]>;
    } catch (error) {
      throw unavailable(error instanceof Error ? error.message : 'scan failed');
    } finally {
      waiting -= 1;
      if (waiting === 0) worker.unref();
    }
  }

  return {
    scan: (request) => call('scan', request),
    beginSnapshot: async () => {
      const snapshot = ++snapshots;
      await call('beginSnapshot', snapshot);
      return snapshot;
    },
    endSnapshot: (snapshot) => call('endSnapshot', snapshot),
    close: async () => {
      closed = true;
      await thread?.worker.terminate();
    },
  };
}

interface ScanThread {
  readonly worker: Worker;
  readonly rpc: ThreadRpc<ScanCalls>;
}
