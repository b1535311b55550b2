/** The command as the published package has it, among other packages, by which it knows what it is. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from '../../scripts/bundle.ts';

const root = join(import.meta.dirname, '..', '..');

/** @returns its path. */
export async function packProgram(): Promise<string> {
  return join(await pack(), 'bin', 'strongroom.js');
}

/**
 * The same with more entry points.
 * @returns a directory that goes with this process.
 */
export async function pack(more: readonly string[] = []): Promise<string> {
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, 'strongroom-package-'));
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
  await bundle(join(directory, 'dist'), more);
  mkdirSync(join(directory, 'bin'), { recursive: true });
  for (const file of ['package.json', 'bin/strongroom.js', 'bin/healthcheck.js']) {
    copyFileSync(join(root, file), join(directory, file));
  }
  return directory;
}
