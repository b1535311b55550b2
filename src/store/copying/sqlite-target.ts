/** An empty data directory as the target of a copy. No server serves it before the last step. */
import { existsSync, linkSync, mkdirSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { makePrivateDirectory } from '../private-directory.ts';
import { RestoreError } from '../restore-error.ts';
import { syncFile } from '../sqlite/backup.ts';
import { databaseFile, migrate, stagingDirectory, withoutIndexes } from '../sqlite/database.ts';
import { lockDirectory } from '../sqlite/directory-lock.ts';
import { withoutLog } from '../sqlite/restore.ts';
import { explainFull } from './full-disk.ts';
import { openSqliteCopy } from './sqlite-copy.ts';
import {
  type CopyState,
  type CopyTarget,
  createState,
  createTarget,
  dropState,
  readState,
  type TargetOptions,
} from './target.ts';

/**
 * Goes on where an earlier copy of that name ended.
 * @param begin removes what any other copy has left, and begins where there is none of that name.
 * @returns `undefined` where there is no such copy and none is to begin; nothing has changed then.
 * @throws RestoreError when the directory has a database; nothing has changed then.
 * @throws DirectoryLockedError when a server or another copy has the directory.
 */
export async function takeDirectory(
  dataDir: string,
  { copy, begin }: TargetOptions,
): Promise<CopyTarget | undefined> {
  const place = databaseFile(dataDir);
  refuseTaken(place);
  if (!begin && !existsSync(dataDir)) return undefined;
  const lock = lockDirectory(dataDir);
  try {
    refuseTaken(place);
    const staging = stagingDirectory(dataDir);
    const staged = databaseFile(staging);
    const known = await stateIn(staged);
    const isResumed = known?.copy === copy;
    if (!isResumed && !begin) {
      lock.release();
      return undefined;
    }
    const state = isResumed ? known : await prepare(dataDir, copy);
    const database = openSqliteCopy(staged);
    await database.run('pragma secure_delete = on', 'pragma cache_size = -32000');
    const release = async () => {
      await database.close();
      lock.release();
    };
    return createTarget({
      database,
      state,
      isResumed,
      release,
      serve: async () => {
        await database.close();
        withoutLog(staged);
        syncFile(staged);
        // What the copy knows of itself stays until the link: a command that is killed before goes on from here.
        linkSync(staged, place);
        syncFile(dataDir);
        await tidyDirectory(dataDir);
      },
    });
  } catch (error) {
    lock.release();
    throw explainFull(error, dataDir);
  }
}

/** Removes what the last step of a copy leaves where it is interrupted. Servers may run by then. */
export async function tidyDirectory(dataDir: string): Promise<void> {
  rmSync(stagingDirectory(dataDir), { recursive: true, force: true });
  const database = openSqliteCopy(databaseFile(dataDir));
  try {
    await database.run(dropState);
  } finally {
    await database.close();
  }
}

function refuseTaken(place: string): void {
  if (!existsSync(place)) return;
  throw new RestoreError(`The place is not empty: ${place} exists. Nothing was changed.`);
}

/** Of an earlier copy; `undefined` of what a restore left, or a copy that had hardly begun. */
async function stateIn(staged: string): Promise<CopyState | undefined> {
  if (!existsSync(staged)) return undefined;
  const database = openSqliteCopy(staged);
  try {
    return await readState(database);
  } catch {
    return undefined;
  } finally {
    await database.close();
  }
}

async function prepare(dataDir: string, copy: string): Promise<CopyState> {
  const staging = stagingDirectory(dataDir);
  rmSync(staging, { recursive: true, force: true });
  makePrivateDirectory(dataDir);
  mkdirSync(staging, { mode: 0o700 });
  syncFile(dataDir);
  const file = databaseFile(staging);
  const database = new DatabaseSync(file);
  let indexes: readonly string[];
  try {
    database.exec('pragma journal_mode = wal; begin');
    migrate(database);
    indexes = withoutIndexes(database);
    database.exec('commit');
  } finally {
    database.close();
  }
  const state = { copy, indexes, tables: {} };
  const created = openSqliteCopy(file);
  try {
    await createState(created, state);
  } finally {
    await created.close();
  }
  return state;
}
