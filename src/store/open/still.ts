/** A database that no server has, and that none can take while it is held: all of its rows, as they are stored. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { holdPostgres } from '../postgres/still.ts';
import { RestoreError } from '../restore-error.ts';
import { batchesOf } from '../sqlite/batches.ts';
import { busyTimeoutMs, databaseFile } from '../sqlite/database.ts';
import { DirectoryLockedError, lockDirectory } from '../sqlite/directory-lock.ts';
import type { StillDatabase } from '../still-database.ts';
import { shapes } from '../tables.ts';
import { NoDatabaseError } from './read-only.ts';

/** Of a database: either the URL of PostgreSQL, or the data directory of the embedded engine. */
export type DatabaseAddress = { readonly databaseUrl: string } | { readonly dataDir: string };

/**
 * Keeps servers away from a database until it is released.
 * @throws RestoreError when a server has it.
 * @throws NoDatabaseError when there is none.
 */
export async function holdStill(address: DatabaseAddress): Promise<StillDatabase> {
  if ('databaseUrl' in address) return holdPostgres(address.databaseUrl);
  const file = databaseFile(address.dataDir);
  if (!existsSync(file)) throw new NoDatabaseError(`There is no database ${file}.`);
  const lock = lockIn(address.dataDir);
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: busyTimeoutMs });
    return {
      rows: (table) =>
        batchesOf(database.prepare(`select ${shapes[table].columns.join(', ')} from ${table}`)),
      release: async () => {
        database.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function lockIn(dataDir: string) {
  try {
    return lockDirectory(dataDir);
  } catch (error) {
    if (!(error instanceof DirectoryLockedError)) throw error;
    throw new RestoreError(
      `A server is running on ${dataDir}. Stop it first: what it writes during the copy would be missing.`,
    );
  }
}
