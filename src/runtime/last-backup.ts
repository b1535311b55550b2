/** When a backup was last made with this data directory: a note in it, for `strongroom doctor`. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Instant, parseInstant } from '../base/clock.ts';
import { isObject } from '../base/json.ts';

export interface LastBackup {
  readonly created_at: string;
  readonly directory: string;
}

const fileName = 'last-backup.json';

/** The backup is made, whether or not the note can be written: a data directory may be read-only, or not there. */
export function noteBackup(dataDir: string, backup: LastBackup): void {
  const file = join(dataDir, fileName);
  const next = `${file}.new`;
  try {
    writeFileSync(next, `${JSON.stringify(backup)}\n`, { mode: 0o600 });
    renameSync(next, file);
  } catch {
    // Doctor then goes by the note before.
  }
}

/** When it was made. */
export function lastBackupAt(dataDir: string): Instant | undefined {
  const last = readLastBackup(dataDir);
  return last && parseInstant(Date.parse(last.created_at));
}

/** `undefined` where none is noted, or the note cannot be read. */
export function readLastBackup(dataDir: string): LastBackup | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(join(dataDir, fileName), 'utf8'));
    if (!isObject(note) || Number.isNaN(Date.parse(String(note['created_at'])))) return undefined;
    return { created_at: String(note['created_at']), directory: String(note['directory']) };
  } catch {
    return undefined;
  }
}
