/** Exporting log entries as they commit: a line per entry, for collectors. It never holds up the vault. */
import { write as writeDescriptor } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Clock, type Instant, second } from '../base/clock.ts';
import type { ChainedEntry } from '../store/log-chain/entries.ts';
import { formatEntry } from './records.ts';

/** Where lines go; rejects when they could not be written. */
export type WriteLines = (lines: string) => Promise<void>;

export interface LogExport {
  /** Takes entries that are durable. Returns at once, whatever becomes of the lines. */
  readonly take: (entries: readonly ChainedEntry[]) => void;
  /** Characters that wait to be written. */
  readonly waiting: () => number;
  /** Since when lines could not be written; `undefined` if the last ones were. */
  readonly failingSince: () => Instant | undefined;
  /** Waits briefly for queued lines; lines that cannot be written by then are lost to the export. */
  close(): Promise<void>;
}

export interface LogExportOptions {
  readonly write: WriteLines;
  /** So many lines were not written and will not be. */
  readonly onLost: (count: number) => void;
  readonly pause: (ms: number) => Promise<unknown>;
  readonly clock: Clock;
}

/** Lines that wait for a slow collector; what comes on top of them is lost to it, not to the log. */
export const queuedCharactersMax = 16 * 1024 * 1024;
const retryMs = second;
const closeMsMax = 5 * second;

export function createLogExport({ write, onLost, pause, clock }: LogExportOptions): LogExport {
  let queue: string[] = [];
  let characters = 0;
  let running: Promise<void> | undefined;
  let closing = false;
  let failingSince: Instant | undefined;
  /** While a collector reads nothing, a write neither ends nor fails. */
  let writingSince: Instant | undefined;

  async function run(): Promise<void> {
    while (queue.length > 0) {
      const lines = queue;
      const size = characters;
      queue = [];
      characters = 0;
      try {
        writingSince = clock.now();
        await write(lines.join(''));
        failingSince = undefined;
      } catch {
        failingSince ??= writingSince;
        if (closing) {
          onLost(lines.length);
          continue;
        }
        queue = [...lines, ...queue];
        characters += size;
        await pause(retryMs);
      }
    }
    running = undefined;
    writingSince = undefined;
  }

  return {
    take: (entries) => {
      let lost = 0;
      for (const entry of entries) {
        if (characters < queuedCharactersMax) {
          const line = formatEntry(entry);
          queue.push(line);
          characters += line.length;
        } else {
          lost++;
        }
      }
      if (lost > 0) onLost(lost);
      // An empty run would resolve at once, and `running` would never be cleared.
      if (queue.length > 0) running ??= run();
    },
    waiting: () => characters,
    failingSince: () => failingSince ?? writingSince,
    close: async () => {
      closing = true;
      await Promise.race([running, pause(closeMsMax)]);
      if (queue.length > 0) onLost(queue.length);
    },
  };
}

/** Appends to a file, which is opened each time, so that it may be rotated at any moment. */
export function toFile(file: string): WriteLines {
  return (lines) => appendFile(file, lines, { mode: 0o600 });
}

/** A pipe takes this many bytes atomically, so that lines of other processes never come in between (PIPE_BUF). */
const pipeBytes = 4096;
const standardOutput = 1;
const fullPipePauseMs = 20;
const writeBytes = promisify(writeDescriptor);

/**
 * Writes on a thread of the pool. Node's own stream writes to a pipe on the main thread, and a
 * collector that stops reading would stop the vault.
 */
export async function toStandardOutput(lines: string): Promise<void> {
  let chunk = '';
  for (const line of lines.split(/(?<=\n)/)) {
    if (chunk !== '' && Buffer.byteLength(chunk) + Buffer.byteLength(line) > pipeBytes) {
      await writeWhole(Buffer.from(chunk));
      chunk = '';
    }
    chunk += line;
  }
  await writeWhole(Buffer.from(chunk));
}

async function writeWhole(bytes: Buffer): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    try {
      written += (await writeBytes(standardOutput, bytes, written)).bytesWritten;
    } catch (error) {
      // The pipe is full, and it was opened in non-blocking mode.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await pause(fullPipePauseMs);
    }
  }
}
