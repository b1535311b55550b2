/** A store that is only looked at: a copy, or the database of a running server, as of one moment. */
import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { refusalOf, type SchemaState, schemaVersion, stateOf } from '../migrations/migrate.ts';
import { MovedVaultError } from '../outgoing-copy.ts';
import { parsers } from '../postgres/engine.ts';
import { Servers } from '../postgres/servers.ts';
import { explainTls } from '../postgres/tls.ts';
import { explainWorker } from '../postgres/workers.ts';
import { postgresBuilder, sqliteBuilder } from '../query-builder.ts';
import { busyTimeoutMs, databaseFile, unchangingFile } from '../sqlite/database.ts';
import { prepareLists } from '../sqlite/lists.ts';
import type { Store } from '../store.ts';
import { namedRowReader, readRows } from '../stored-form.ts';
import type { SqlValue } from '../tables.ts';

/** What was committed before it was opened, and nothing of what is committed meanwhile. */
export type ReadOnlyStore = Pick<Store, 'select' | 'close'>;

/** There is no database of this vault at that place. */
export class NoDatabaseError extends Error {
  override readonly name = 'NoDatabaseError';
}

/** There is a database of PostgreSQL, in which no vault has started yet. */
export class EmptyDatabaseError extends NoDatabaseError {}

/**
 * Opens the database without creating, migrating or altering anything. No root key is needed.
 * @param place `postgres://…`, the file of the embedded engine, or its data directory.
 * @param isUnfinished the target of a copy, of which servers keep away.
 */
export async function openReadOnly(
  place: string,
  { isUnfinished = false } = {},
): Promise<ReadOnlyStore> {
  const store = await openPlace(place);
  try {
    if (isUnfinished) return store;
    const found = await stateIn(store);
    if (found.version < schemaVersion) {
      throw new NoDatabaseError('An older release wrote this database. Use that release.');
    }
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Opens the file of a backup, also of an earlier release: what the log, the tenants and the vault's keys consist of is
 * in all of them. Nothing is created next to the file.
 * @throws DowngradeError for one of a later release.
 */
export async function openBackedUp(
  file: string,
): Promise<{ readonly store: ReadOnlyStore; readonly version: number }> {
  const store = storeOver(new DatabaseSync(unchangingFile(file), { readOnly: true }));
  try {
    const { version } = await stateIn(store);
    return { store, version };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function stateIn(store: ReadOnlyStore): Promise<SchemaState> {
  const [row] = await store.select((db) =>
    db
      .withTables<{ schema_version: { version: number; oldest_server: number } }>()
      .selectFrom('schema_version')
      .selectAll(),
  );
  const found = stateOf(row);
  const refusal = refusalOf(found);
  // What has moved can still be looked at, and compared with its copy.
  if (refusal && !(refusal instanceof MovedVaultError)) throw refusal;
  return found;
}

async function openPlace(place: string): Promise<ReadOnlyStore> {
  return /^postgres(?:ql)?:\/\//.test(place)
    ? await openCopyOnPostgres(place)
    : openCopyOnSqlite(isDirectory(place) ? databaseFile(place) : place);
}

function isDirectory(place: string): boolean {
  return statSync(place, { throwIfNoEntry: false })?.isDirectory() === true;
}

function openCopyOnSqlite(file: string): ReadOnlyStore {
  if (!existsSync(file)) throw new NoDatabaseError(`There is no database ${file}.`);
  return storeOver(openFile(file));
}

function storeOver(database: DatabaseSync): ReadOnlyStore {
  return {
    select: async (query) => {
      const { sql, parameters } = query(sqliteBuilder).compile();
      const { names, all } = prepareLists(database, sql);
      return all(parameters as SqlValue[]).map(namedRowReader(names)) as never;
    },
    close: async () => database.close(),
  };
}

/** SQLite creates files next to a database to read it. Where it may not, the file is taken as unchanging. */
function openFile(file: string): DatabaseSync {
  const open = (place: string | URL) => {
    const database = new DatabaseSync(place, { readOnly: true, timeout: busyTimeoutMs });
    try {
      database.exec('begin');
      database.prepare('select version from schema_version').get();
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  };
  try {
    return open(file);
  } catch (error) {
    if (existsSync(`${file}-wal`)) throw error;
    return open(unchangingFile(file));
  }
}

const selectVault =
  "select to_regclass('schema_version') is not null as has, current_database() as name";

async function openCopyOnPostgres(url: string): Promise<ReadOnlyStore> {
  const servers = new Servers(url, { application_name: 'strongroom logs', types: parsers });
  const session = await servers.connectToRead({}).catch(async (error) => {
    await servers.close();
    throw explainTls(error);
  });
  const close = async () => {
    await session.close();
    await servers.close();
  };
  await session.query({ text: 'begin isolation level repeatable read read only' });
  const { rows } = await session.query({ text: selectVault });
  const [{ has, name } = {}] = rows as { has?: boolean; name?: string }[];
  if (!has) {
    await close();
    throw new EmptyDatabaseError(`There is no vault in the database ${name}.`);
  }
  // Pages follow the primary key. Without fresh statistics the planner would sort all that remains
  // for each page, which was measured at a thirtieth of the speed.
  await session.query({ text: 'set local enable_sort = off; set local enable_bitmapscan = off' });
  return {
    select: async (query) => {
      const { sql, parameters } = query(postgresBuilder).compile();
      const asked = session.query({ text: sql, values: [...parameters] });
      const { rows } = await asked.catch((error) => Promise.reject(explainWorker(error)));
      return readRows(rows);
    },
    close,
  };
}
