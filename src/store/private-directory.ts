/** Directories for their owner alone. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const mode = 0o700;

/**
 * Makes what is missing of the path. Where a file system lets nobody make directories and says so in words of
 * its own, as Linux does in /proc, Node's `recursive` never returns.
 */
export function makePrivateDirectory(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.push(at);
  // What is there already may be something else than a directory, which the system then says.
  const [own = resolve(path)] = missing;
  for (const one of missing.reverse()) makeOne(one);
  if (!statSync(own).isDirectory()) mkdirSync(own, { mode });
}

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have been quicker.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
