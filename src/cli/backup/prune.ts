/** Which backups of a directory are kept. Only directories that `backup --keep` has named are ever removed. */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { day } from '../../base/clock.ts';
import { manifestFile } from './manifest.ts';

const nameForm = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z$/;

/** Such as `2026-11-24T01-45-00Z`: names sort by time. */
export function directoryNamed(time: Date): string {
  return time
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-');
}

/**
 * Removes all complete backups but the newest ones, and those that were interrupted more than a day before the newest.
 * @returns the paths of what was removed.
 */
export function prune(parent: string, keep: number): readonly string[] {
  const names = readdirSync(parent, { withFileTypes: true })
    // Behind a link there is something else than a backup that was made here.
    .filter((entry) => entry.isDirectory() && nameForm.test(entry.name))
    .map(({ name }) => name)
    .sort();
  const isComplete = (name: string) => existsSync(manifestFile(join(parent, name)));
  const complete = names.filter(isComplete);
  const newest = timeOf(complete.at(-1) ?? '');
  const interrupted = names.filter((name) => !isComplete(name) && timeOf(name) < newest - day);
  const removed = [...complete.slice(0, -keep), ...interrupted].map((name) => join(parent, name));
  for (const directory of removed) {
    // First, so that a removal that is interrupted leaves nothing that looks complete.
    rmSync(manifestFile(directory), { force: true });
    rmSync(directory, { recursive: true });
  }
  return removed;
}

function timeOf(name: string): number {
  return Date.parse(name.replace(nameForm, '$1T$2:$3:$4Z'));
}
