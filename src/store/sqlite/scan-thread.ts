/** The thread of long reads: a connection that can only read, one query after another. */
import { parentPort, workerData } from 'node:worker_threads';
import { openReader } from './database.ts';
import type { ScanReply, ScanRequest } from './scanner.ts';

function serve(dataDir: string): void {
  const database = openReader(dataDir);
  parentPort?.on('message', ({ sql, parameters }: ScanRequest) => {
    parentPort?.postMessage(answer(sql, parameters));
  });

  function answer(sql: string, parameters: ScanRequest['parameters']): ScanReply {
    try {
      return { rows: database.prepare(sql).all(...parameters) };
    } catch (error) {
      return { failed: error instanceof Error ? error.message : 'scan failed' };
    }
  }
}

serve(workerData as string);
