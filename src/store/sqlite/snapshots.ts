/** Reads that share a snapshot of the embedded database: to take one costs as much as to look up a row. */
import type { DatabaseSync } from 'node:sqlite';
import { systemCodeOf } from '../../base/errors.ts';
import { impossible, unavailable } from '../unavailable.ts';

export interface Snapshots {
  /**
   * From the second read of a turn of the event loop on, all of that turn see the same, until a commit:
   * what anybody was notified of by then, on any thread, is seen.
   */
  read<R>(run: () => R): R;
  end(): void;
}

/** @param commits returns another number after each commit, before any listener is notified of it. */
export function createSnapshots(reader: DatabaseSync, commits: () => number): Snapshots {
  const begin = reader.prepare('begin');
  const commit = reader.prepare('commit');
  let hasRead = false;
  let begunAt = commits();

  function end(): void {
    hasRead = false;
    if (reader.isOpen && reader.isTransaction) commit.run();
  }

  function enter(): void {
    const latest = commits();
    if (latest !== begunAt) {
      begunAt = latest;
      if (reader.isTransaction) commit.run();
    }
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
        // Of an integer beyond 2^53, whose value the message has.
        if (systemCodeOf(error) === 'ERR_OUT_OF_RANGE') {
          throw impossible(error);
        }
        throw unavailable(error instanceof Error ? error.message : 'read failed');
      }
    },
    end,
  };
}
