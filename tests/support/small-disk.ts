/** A disk of its own for a test, which it can fill. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmdirSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Lender } from './temporary.ts';

/** `undefined` for a user who may not mount one. */
export function smallDisk(t: Lender, mebibytes: number): string | undefined {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'none', directory], {
      stdio: 'ignore',
    });
  } catch {
    rmdirSync(directory);
    return undefined;
  }
  t.after(() => {
    execFileSync('umount', ['-l', directory]);
    rmdirSync(directory);
  });
  return directory;
}

export function freeOn(disk: string): number {
  const { bavail, bsize } = statfsSync(disk);
  return bavail * bsize;
}
