/** Reads that share a snapshot of the embedded database: to take one costs as much as to look up a row. */
import type { DatabaseSync } from 'node:sqlite';
import { unavailable } from '../unavailable.ts';

export interface Snapshots {
  /** From the second read of a turn of the event loop on, all of that turn see the same. */
  read<R>(run: () => R): R;
  /** What is read from now on sees every commit so far. Called before anybody is notified of a commit. */
  end(): void;
}

export function createSnapshots(reader: DatabaseSync): Snapshots {
  const begin = reader.prepare('begin');
  const commit = reader.prepare('commit');
  let hasRead = false;

  function end(): void {
    hasRead = false;
    if (reader.isOpen && reader.isTransaction) commit.run();
  }

  function enter(): void {
    if (!hasRead) {
      hasRead = true;
      setImmediate(end);
    } else if (!reader.isTransaction) {
      begin.run();
    }
  }

  return {
    read: (run) => {
      try {
        enter();
        return run();
      } catch (error) {
        throw unavailable(error instanceof Error ? error.message : 'read failed');
      }
    },
    end,
  };
}
