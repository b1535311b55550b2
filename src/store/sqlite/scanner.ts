/** Reads that go through many rows, on a thread of their own: the requests of others do not wait for them. */
import { Worker } from 'node:worker_threads';
import { entryPointUrl } from '../../lib/installation/entry-points.ts';
import type { SqlValue } from '../tables.ts';
import { overloaded, unavailable } from '../unavailable.ts';

export interface ScanRequest {
  readonly sql: string;
  readonly parameters: readonly SqlValue[];
}

/** Rows as lists of values, in the order of the names of their columns. */
export interface ScannedLists {
  readonly names: readonly string[];
  readonly lists: readonly (readonly SqlValue[])[];
}

export type ScanReply =
  | ScannedLists
  /** The engine could not do it; the text is for the operator. */
  | { readonly failed: string };

export interface Scanner {
  /** Rejects with `unavailable` when the engine does not respond, `overloaded` when too many ask. */
  scan(request: ScanRequest): Promise<ScannedLists>;
  close(): Promise<void>;
}

interface PendingScan {
  resolve(lists: ScannedLists): void;
  reject(error: Error): void;
}

/** Scans that wait for the one before them; what comes on top of them is refused at once. */
export const scansWaitingMax = 1_000;

/** The thread starts with the first request and, should it ever die, again with the next one. */
export function createScanner(dataDir: string): Scanner {
  let thread: Worker | undefined;
  let waiting: PendingScan[] = [];
  let closed = false;

  function start(): Worker {
    const worker = new Worker(entryPointUrl('store/sqlite/scan-thread'), { workerData: dataDir });
    worker.unref();
    worker.on('message', (reply: ScanReply) => {
      const next = waiting.shift();
      if (waiting.length === 0) worker.unref();
      if ('lists' in reply) next?.resolve(reply);
      else next?.reject(unavailable(reply.failed));
    });
    // The exit that follows reports why; nothing was changed.
    worker.on('error', () => undefined);
    worker.on('exit', () => {
      if (thread === worker) thread = undefined;
      const abandoned = waiting;
      waiting = [];
      for (const { reject } of abandoned) reject(unavailable('the scanning thread ended'));
    });
    return worker;
  }

  return {
    scan: (request) =>
      new Promise((resolve, reject) => {
        if (closed) throw unavailable('the store is closed');
        if (waiting.length >= scansWaitingMax) throw overloaded('too many scans wait');
        thread ??= start();
        waiting.push({ resolve, reject });
        thread.ref();
        thread.postMessage(request);
      }),
    close: async () => {
      closed = true;
      await thread?.terminate();
    },
  };
}
