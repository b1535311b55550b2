/** Opens the embedded database: its file, its pragmas, its schema. */
import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { ColumnTypes } from '../migrations/column-types.ts';
import {
  createVersionTable,
  pendingStatements,
  released,
  selectState,
  stateOf,
} from '../migrations/migrate.ts';
import { makePrivateDirectory } from '../private-directory.ts';
import { UnfinishedRestoreError } from '../unfinished-restore.ts';

export const types: ColumnTypes = {
  engine: 'sqlite',
  text: 'text',
  integer: 'integer',
  bytes: 'blob',
  tenant: 'integer',
  rowid: '',
  byRowid: '',
  strict: 'strict',
  scratchTable: 'table',
  keptByKey: 'strict, without rowid',
  keyCovers: () => '',
};

/** The time that a statement waits for another process, such as the command line, to finish its commit. */
export const busyTimeoutMs = 5000;

/** Read back after setting: SQLite ignores a pragma it cannot honour instead of failing. */
const writerPragmas = [
  { name: 'journal_mode', set: 'wal', expected: 'wal' },
  // A commit is on disk before it is acknowledged, also when the machine loses power.
  { name: 'synchronous', set: 'full', expected: 2 },
  // What is deleted is overwritten with zeros in the file.
  { name: 'secure_delete', set: 'on', expected: 1 },
  { name: 'trusted_schema', set: 'off', expected: 0 },
  // The journal of savepoints stays in memory, because a file would contain deleted values.
  { name: 'temp_store', set: 'memory', expected: 2 },
  // Pages: 16 MiB of log. Indexes are written at random places, and a page that changes often is moved once.
  { name: 'wal_autocheckpoint', set: '4000', expected: 4000 },
  // KiB, negative by convention. A page that is dropped before its commit is written twice.
  { name: 'cache_size', set: '-4000', expected: -4000 },
] as const;

export function databaseFile(dataDir: string): string {
  return join(dataDir, 'strongroom.db');
}

/** For SQLite to take the file as unchanging: it creates nothing next to it, and looks for nothing there. */
export function unchangingFile(file: string): URL {
  const url = pathToFileURL(file);
  url.search = 'immutable=1';
  return url;
}

/** Where a restore prepares the database. Its last step moves the file to the data directory. */
export function stagingDirectory(dataDir: string): string {
  return join(dataDir, 'restoring');
}

function isRestoring(dataDir: string): boolean {
  return existsSync(stagingDirectory(dataDir)) && !existsSync(databaseFile(dataDir));
}

/** Opens the one writing connection, creating and migrating the database as needed. */
export function openWriter(dataDir: string): DatabaseSync {
  if (isRestoring(dataDir)) throw new UnfinishedRestoreError();
  makePrivateDirectory(dataDir);
  const database = new DatabaseSync(databaseFile(dataDir), { timeout: busyTimeoutMs });
  chmodSync(databaseFile(dataDir), 0o600);
  for (const pragma of writerPragmas) {
    database.exec(`pragma ${pragma.name} = ${pragma.set}`);
    const row = database.prepare(`pragma ${pragma.name}`).get();
    const found = row && Object.values(row)[0];
    if (found !== pragma.expected) {
      throw new Error(
        `SQLite refuses "pragma ${pragma.name} = ${pragma.set}"; it stays at ${found}.`,
      );
    }
  }
  database.exec('begin immediate');
  try {
    migrate(database);
    database.exec('commit');
  } catch (error) {
    database.exec('rollback');
    database.close();
    throw error;
  }
  return database;
}

/** Creates the tables of this release, or those that are missing, in the transaction of the caller. */
export function migrate(database: DatabaseSync, migrations = released): void {
  database.exec(createVersionTable(types));
  const found = stateOf(database.prepare(selectState).get());
  for (const statement of pendingStatements(found, types, migrations)) database.exec(statement);
}

/** To sort an index at the end is faster than to keep it sorted. @returns the statements that create them again. */
export function withoutIndexes(database: DatabaseSync): readonly string[] {
  const rows = database
    .prepare("select name, sql from sqlite_master where type = 'index' and sql is not null")
    .all();
  for (const { name } of rows) database.exec(`drop index ${name}`);
  return rows.map(({ sql }) => String(sql));
}

/** Opens a read-only connection, which sees each commit immediately. */
export function openReader(dataDir: string): DatabaseSync {
  const database = new DatabaseSync(databaseFile(dataDir), {
    readOnly: true,
    timeout: busyTimeoutMs,
  });
  database.exec('pragma cache_size = -4000');
  return database;
}
