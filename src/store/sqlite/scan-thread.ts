/** The thread of long reads: a connection that can only read, one query after another. */
import { parentPort, workerData } from 'node:worker_threads';
import { openReader } from './database.ts';
import { prepareLists } from './lists.ts';
import type { ScanReply, ScanRequest } from './scanner.ts';

function serve(dataDir: string): void {
  const database = openReader(dataDir);
  parentPort?.on('message', ({ sql, parameters }: ScanRequest) => {
    parentPort?.postMessage(answer(sql, parameters));
  });

  function answer(sql: string, parameters: ScanRequest['parameters']): ScanReply {
    try {
      const { names, all } = prepareLists(database, sql);
      return { names, lists: all(parameters) };
    } catch (error) {
      return { failed: error instanceof Error ? error.message : 'scan failed' };
    }
  }
}

serve(workerData as string);
