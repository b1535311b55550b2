/** Puts the file of a backup into an empty data directory. No server serves it before the last step. */
import {
  createReadStream,
  createWriteStream,
  existsSync,
  linkSync,
  mkdirSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pipeline } from 'node:stream/promises';
import { systemCodeOf } from '../../base/errors.ts';
import { makePrivateDirectory } from '../private-directory.ts';
import { RestoreError } from '../restore-error.ts';
import { syncFile } from './backup.ts';
import { databaseFile, stagingDirectory } from './database.ts';
import { lockDirectory } from './directory-lock.ts';
import { isFull } from './failure.ts';

export interface SqliteRestoreOptions {
  readonly dataDir: string;
  /** Of the backup, verified. */
  readonly file: string;
  /**
   * Runs when the database is there, in a data directory of its own that no server has.
   * @param staging that directory.
   */
  readonly complete: (staging: string) => Promise<void>;
}

/**
 * Resolves when the data directory can be served. One that was interrupted leaves a directory that is not served, and
 * that the next call empties first.
 * @throws RestoreError when the directory has a database, or its disk is full; nothing has changed then.
 * @throws DirectoryLockedError when a server or another restore has the directory.
 */
export async function restoreSqlite({
  dataDir,
  file,
  complete,
}: SqliteRestoreOptions): Promise<void> {
  const target = databaseFile(dataDir);
  requireEmptyDirectory(dataDir);
  const lock = lockDirectory(dataDir);
  try {
    requireEmptyDirectory(dataDir);
    const staging = stagingDirectory(dataDir);
    rmSync(staging, { recursive: true, force: true });
    makePrivateDirectory(dataDir);
    mkdirSync(staging, { mode: 0o700 });
    syncFile(dataDir);
    try {
      const staged = databaseFile(staging);
      await pipeline(
        createReadStream(file, { highWaterMark: 1_048_576 }),
        createWriteStream(staged, { mode: 0o600, flags: 'wx' }),
      );
      await complete(staging);
      withoutLog(staged);
      syncFile(staged);
      linkSync(staged, target);
      syncFile(dirname(target));
    } catch (error) {
      if (!isFull(error) && systemCodeOf(error) !== 'ENOSPC') throw error;
      const message = `The disk of ${dataDir} is full. Nothing was restored, and the place is empty again.`;
      throw new RestoreError(message, { cause: error });
    } finally {
      // After the link nothing of it is needed, and before it the place is empty again.
      rmSync(staging, { recursive: true, force: true });
    }
  } finally {
    lock.release();
  }
}

/** @throws RestoreError where the directory has a database. */
export function requireEmptyDirectory(dataDir: string): void {
  const target = databaseFile(dataDir);
  if (!existsSync(target)) return;
  throw new RestoreError(`The place is not empty: ${target} exists. Nothing was changed.`);
}

/** What was committed is in the file itself then, so that the link is all of it. */
export function withoutLog(staged: string): void {
  const database = new DatabaseSync(staged);
  try {
    database.exec('pragma wal_checkpoint(truncate)');
  } finally {
    database.close();
  }
}
