/** How long this disk takes to make a small write durable: the floor under every create. */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const appends = 200;
const appendBytes = 512;

/** Milliseconds of each append with its fsync, shortest first. */
export function fsyncTimes(): number[] {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-fsync-'));
  const file = openSync(join(directory, 'appended'), 'a');
  const bytes = Buffer.alloc(appendBytes, 1);
  try {
    const times = Array.from({ length: appends }, () => {
      const started = performance.now();
      writeSync(file, bytes);
      fsyncSync(file);
      return performance.now() - started;
    });
    return times.sort((a, b) => a - b);
  } finally {
    closeSync(file);
    rmSync(directory, { recursive: true });
  }
}
