/** A copy of the embedded database as of one moment, made while servers and commands write to it. */
import { chmodSync, closeSync, existsSync, fsyncSync, linkSync, openSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { systemCodeOf } from '../../base/errors.ts';
import { refusalOf, selectState, stateOf } from '../migrations/migrate.ts';
import {
  journalPrefix,
  MovedVaultError,
  notePrefix,
  outgoingCopy,
  refusalPrefix,
} from '../outgoing-copy.ts';
import { makePrivateDirectory } from '../private-directory.ts';
import { busyTimeoutMs, databaseFile } from './database.ts';
import { isFull } from './failure.ts';

/** The copy was not made. What was there before is as it was. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

export interface BackupOptions {
  readonly dataDir: string;
  /** Where the copy goes, a directory that may serve as a data directory afterwards. */
  readonly directory: string;
  /** Called after each part that was copied. */
  readonly onPart?: (copied: number, total: number) => void;
}

const pagesAtOnce = 1_000;

/**
 * Resolves when the copy is on the disk under its name, and complete. It holds no root key.
 * @returns the number of its pages.
 * @throws BackupError when the place is taken, or when the database is damaged.
 */
export async function backUpSqlite({ dataDir, directory, onPart }: BackupOptions): Promise<number> {
  const source = databaseFile(dataDir);
  if (!existsSync(source)) throw new BackupError(`There is no database ${source}.`);
  return writeCopy(directory, (partial) => copyPages({ source, partial, onPart }));
}

/**
 * Makes the file of a backup: with 0600 from its first byte on, under its name only once it is complete, and never in
 * the place of another file.
 * @param fill writes an embedded database into an empty file.
 * @throws BackupError when the place is taken, or when the database that was written is damaged.
 */
export async function writeCopy<T>(
  directory: string,
  fill: (partial: string) => Promise<T>,
): Promise<T> {
  const file = databaseFile(directory);
  if (existsSync(file)) throw new BackupError(`${file} exists. Name another directory.`);
  makePrivateDirectory(directory);
  const partial = join(directory, 'strongroom.db.partial');
  createEmpty(partial);
  try {
    const filled = await fill(partial);
    checkPages(partial);
    syncFile(partial);
    // Unlike a rename, a link does not replace a file that another process has created meanwhile.
    linkSync(partial, file);
    rmSync(partial);
    syncFile(dirname(file));
    return filled;
  } catch (error) {
    for (const suffix of ['', '-journal', '-wal', '-shm']) {
      rmSync(`${partial}${suffix}`, { force: true });
    }
    if (isFull(error) || systemCodeOf(error) === 'ENOSPC') {
      const message = `The disk of ${directory} is full. No backup was made, and nothing of it is left there.`;
      throw new BackupError(message, { cause: error });
    }
    throw error;
  }
}

/** SQLite takes an empty file for an empty database, and keeps its mode. */
function createEmpty(partial: string): void {
  try {
    closeSync(openSync(partial, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const message = `${partial} exists: a backup is being written there, or was interrupted.`;
    throw new BackupError(`${message} Remove it, or name another directory.`);
  }
  chmodSync(partial, 0o600);
}

interface Copying {
  readonly source: string;
  readonly partial: string;
  readonly onPart: BackupOptions['onPart'];
}

async function copyPages({ source, partial, onPart }: Copying): Promise<number> {
  const reader = new DatabaseSync(source, { readOnly: true, timeout: busyTimeoutMs });
  try {
    // Without a snapshot SQLite begins again whenever another connection has committed, so that the copy of a busy
    // vault would never end.
    reader.exec('begin');
    requireNotMoved(reader);
    return await backup(reader, partial, {
      rate: pagesAtOnce,
      progress: ({ totalPages, remainingPages }) => {
        onPart?.(totalPages - remainingPages, totalPages);
      },
    });
  } finally {
    reader.close();
  }
}

/** A backup of a vault that goes on elsewhere would be a second one from the same moment. @throws MovedVaultError */
function requireNotMoved(reader: DatabaseSync): void {
  const refusal = refusalOf(stateOf(reader.prepare(selectState).get()));
  if (refusal instanceof MovedVaultError) throw refusal;
}

/** Finds pages that the disk has damaged, in time: while an older backup still exists. */
function checkPages(partial: string): void {
  const copy = new DatabaseSync(partial);
  try {
    // A backup is not the source of a copy that was under way.
    removeCopyNotes(copy);
    // Readers of a copy in another mode create files next to it.
    copy.exec('pragma journal_mode = delete');
    const row = copy.prepare('pragma quick_check(1)').get();
    if (row?.['quick_check'] === 'ok') return;
    throw new BackupError('The database is damaged, so no backup was written. Keep the last one.');
  } finally {
    copy.close();
  }
}

function removeCopyNotes(copy: DatabaseSync): void {
  const objects = copy
    .prepare(
      "select type, name from sqlite_schema where type in ('trigger', 'table') order by type desc",
    )
    .all()
    .map(({ type, name }) => ({ type: String(type), name: String(name) }));
  for (const { type, name } of objects) {
    const isOfCopy =
      type === 'table'
        ? name === outgoingCopy || name.startsWith(journalPrefix)
        : // That a tenant has moved is in its row, too.
          name.startsWith(notePrefix) || name.startsWith(refusalPrefix);
    if (isOfCopy) copy.exec(`drop ${type} "${name.replaceAll('"', '""')}"`);
  }
}

/** Of a file or a directory. */
export function syncFile(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
