/** Creates directories that only their owner can access. */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemCodeOf } from '../base/errors.ts';

const mode = 0o700;

/**
 * Creates the missing directories of the path. On a file system that refuses directories with an unusual error, such
 * as Linux's /proc, Node's `recursive` option never returns.
 */
export function makePrivateDirectory(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.push(at);
  // An existing path may not be a directory. The system reports that.
  const [own = resolve(path)] = missing;
  for (const one of missing.reverse()) makeOne(one);
  if (!statSync(own).isDirectory()) mkdirSync(own, { mode });
}

function makeOne(path: string): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have created it first.
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}
