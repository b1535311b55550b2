/**
 * The thread of long reads: connections that can only read, one query after another. Each snapshot has a connection of
 * its own.
 */
import assert from 'node:assert/strict';
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { createThreadRpc } from '../../base/thread-rpc.ts';
import { openReader } from './database.ts';
import { prepareLists } from './lists.ts';
import type { ScanCalls } from './scanner.ts';

function serve(dataDir: string): void {
  assert(parentPort, 'a thread has a parent');
  const latest = openReader(dataDir);
  const snapshots = new Map<number, DatabaseSync>();

  function databaseOf(snapshot: number | undefined): DatabaseSync {
    if (snapshot === undefined) return latest;
    const database = snapshots.get(snapshot);
    if (database === undefined) throw new Error('the snapshot was read by a thread that has ended');
    return database;
  }

  createThreadRpc<Record<never, never>, ScanCalls>(parentPort, {
    scan: ({ sql, parameters, snapshot }) => {
      const { names, all } = prepareLists(databaseOf(snapshot), sql);
      return { names, lists: all(parameters) };
    },
    beginSnapshot: (snapshot) => {
      const database = openReader(dataDir);
      database.exec('begin');
      snapshots.set(snapshot, database);
    },
    endSnapshot: (snapshot) => {
      snapshots.get(snapshot)?.close();
      snapshots.delete(snapshot);
    },
  });
}

serve(workerData as string);
