/** The thread of long reads: a connection that can only read, one query after another. */
import assert from 'node:assert/strict';
import { parentPort, workerData } from 'node:worker_threads';
import { createThreadRpc } from '../../base/thread-rpc.ts';
import { openReader } from './database.ts';
import { prepareLists } from './lists.ts';
import type { ScanCalls } from './scanner.ts';

function serve(dataDir: string): void {
  assert(parentPort, 'a thread has a parent');
  const database = openReader(dataDir);
  createThreadRpc<Record<never, never>, ScanCalls>(parentPort, {
    scan: ({ sql, parameters }) => {
      const { names, all } = prepareLists(database, sql);
      return { names, lists: all(parameters) };
    },
  });
}

serve(workerData as string);
