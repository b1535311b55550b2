/** Which backups of a directory are kept. Only what is a backup of the vault is ever removed. */
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { day } from '../../base/clock.ts';
import { RestoreError } from '../../store/restore-error.ts';
import { manifestFile, readManifest } from './manifest.ts';

const nameForm = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z$/;

/** Such as `2026-11-24T01-45-00Z`: names sort by time. */
export function directoryNamed(time: Date): string {
  return time
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(':', '-');
}

/** The files of a backup, and what writing or reading one leaves next to them when it is cut off. */
const fileForm = /^(?:strongroom\.db|manifest\.json)(?:\.partial)?(?:-wal|-shm|-journal)?$/;

/**
 * Removes all complete backups of the vault but the newest ones, and those that were interrupted more than a day before
 * the newest. A directory with anything else in it is not touched, whatever its name is.
 * @returns the paths of what was removed.
 */
export function prune(
  parent: string,
  { keep, vaultId }: { readonly keep: number; readonly vaultId: string | null },
): readonly string[] {
  const backups = readdirSync(parent, { withFileTypes: true })
    // Behind a link there is something else than a backup that was made here.
    .filter((entry) => entry.isDirectory() && nameForm.test(entry.name))
    .map(({ name }) => ({ name, state: stateOf(join(parent, name), vaultId) }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  const namesIn = (state: BackupState) =>
    backups.filter((one) => one.state === state).map(({ name }) => name);
  const complete = namesIn('complete');
  const newest = timeOf(complete.at(-1) ?? '');
  const interrupted = namesIn('interrupted').filter((name) => timeOf(name) < newest - day);
  const removed = [...complete.slice(0, -keep), ...interrupted].map((name) => join(parent, name));
  for (const directory of removed) {
    // First, so that a removal that is interrupted leaves nothing that looks complete.
    rmSync(manifestFile(directory), { force: true });
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    rmdirSync(directory);
  }
  return removed;
}

type BackupState = 'complete' | 'interrupted' | 'foreign';

function stateOf(directory: string, vaultId: string | null): BackupState {
  const files = readdirSync(directory, { withFileTypes: true });
  if (!files.every((one) => one.isFile() && fileForm.test(one.name))) return 'foreign';
  if (!existsSync(manifestFile(directory))) return 'interrupted';
  try {
    return readManifest(directory).vault_id === vaultId ? 'complete' : 'foreign';
  } catch (error) {
    if (error instanceof RestoreError) return 'foreign';
    throw error;
  }
}

function timeOf(name: string): number {
  return Date.parse(name.replace(nameForm, '$1T$2:$3:$4Z'));
}
