/** Fills an empty PostgreSQL database from the file of a backup. No server serves it before the last step. */
import { DatabaseSync } from 'node:sqlite';
import {
  createVersionTable,
  pendingStatements,
  released,
  selectState,
  stateOf,
} from '../migrations/migrate.ts';
import { RestoreError } from '../restore-error.ts';
import { batchesOf } from '../sqlite/batches.ts';
import { unchangingFile } from '../sqlite/database.ts';
import { kindOf, shapes, type Table } from '../tables.ts';
import { incomingCopy, restoringServer } from '../unfinished-restore.ts';
import { arrayTypes } from './array-types.ts';
import { migrationLock, types } from './engine.ts';
import { Servers } from './servers.ts';
import type { Session } from './session.ts';
import { checkServers } from './start.ts';
import { explainTls } from './tls.ts';

export interface PostgresRestoreOptions {
  readonly databaseUrl: string;
  /** Of the backup, verified. */
  readonly file: string;
  /** Called with the number of rows that were written so far. */
  readonly onRows?: (written: number) => void;
  /** Runs when all rows are there. If it fails, they are removed again. */
  readonly complete: () => Promise<void>;
}

/** Any number that other software on the same database is unlikely to lock. A copy of a vault takes it as well. */
export const restoreLock = 7_476_200_120;

/**
 * Resolves when the database can be served. One that was interrupted leaves a database that is not served, and that
 * the next call empties first.
 * @throws RestoreError when the database is not empty; nothing has changed then.
 */
export async function restorePostgres(options: PostgresRestoreOptions): Promise<void> {
  await withSession(options.databaseUrl, async (session) => {
    await takePlace(session);
    try {
      await writeRows(session, options);
      await options.complete();
      const oldest = released.at(-1)?.oldestServer;
      await run(session, `update schema_version set oldest_server = ${oldest}`);
    } catch (error) {
      // Where this fails as well, the next restore does it. Until then no server serves the database.
      await dropTables(session).catch(() => undefined);
      throw error;
    }
  });
}

/** @throws RestoreError where the database has tables of a vault. */
export async function requireEmptyDatabase(databaseUrl: string): Promise<void> {
  await withSession(databaseUrl, requireEmpty);
}

async function requireEmpty(session: Session): Promise<void> {
  if ((await placeOf((text, values) => run(session, text, values))) !== 'taken') return;
  throw new RestoreError(
    'The database is not empty: it has tables with the names of a vault. Name an empty one. Nothing was changed.',
  );
}

async function withSession<T>(
  databaseUrl: string,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const servers = new Servers(databaseUrl, { application_name: 'strongroom restore' });
  try {
    await checkServers(servers);
    const session = await servers.connect({}).catch((error) => {
      throw explainTls(error);
    });
    return await work(session);
  } finally {
    await servers.close();
  }
}

const run = async (session: Session, text: string, values: unknown[] = []) =>
  (await session.query({ text, values })).rows;

/** Runs one statement, and gives its rows. */
export type RunStatement = (
  text: string,
  values?: unknown[],
) => Promise<readonly Record<string, unknown>[]>;

/** Tables of another application have some of the names too, such as `events`: they are not removed. */
export async function placeOf(ask: RunStatement): Promise<'empty' | 'taken' | 'unfinished'> {
  const names = [...vaultTables, 'schema_version'].map(String);
  const text =
    'select name from unnest($1::text[]) as t (name) where to_regclass(name) is not null';
  const found = (await ask(text, [names])).map(({ name }) => name);
  if (!found.includes('schema_version')) return found.length === 0 ? 'empty' : 'taken';
  const { oldestServer } = stateOf((await ask(selectState))[0]);
  return oldestServer === restoringServer ? 'unfinished' : 'taken';
}

/** From its commit on no server starts here. */
async function takePlace(session: Session): Promise<void> {
  const [lock] = await run(session, `select pg_try_advisory_lock(${restoreLock}) as isheld`);
  if (lock?.isheld !== true) {
    throw new RestoreError('Another restore into this database is running. Nothing was changed.');
  }
  await run(session, 'begin');
  await run(session, `select pg_advisory_xact_lock(${migrationLock})`);
  await requireEmpty(session);
  await run(
    session,
    [
      dropVault,
      createVersionTable(types),
      `insert into schema_version (version, oldest_server) values (0, ${restoringServer})`,
      'commit',
    ].join('; '),
  );
}

/** All tables but that of the version. */
export const vaultTables: readonly string[] = [...Object.keys(shapes), 'rate_limits'];

/** Removes the tables that an interrupted restore or copy left. */
export const dropVault = `drop table if exists ${[...vaultTables, 'schema_version', incomingCopy].join(', ')}`;

async function dropTables(session: Session): Promise<void> {
  await run(session, 'rollback');
  await run(session, dropVault);
}

/** In one transaction: a crash leaves no row. */
async function writeRows(
  session: Session,
  { file, onRows }: PostgresRestoreOptions,
): Promise<void> {
  const source = new DatabaseSync(unchangingFile(file), { readOnly: true });
  try {
    const { version } = stateOf(source.prepare(selectState).get());
    const known = released.slice(0, version);
    await run(session, 'begin');
    const none = { version: 0, oldestServer: 0 };
    await run(session, pendingStatements(none, types, known).join('; '));
    const indexes = await withoutIndexes((text, values) => run(session, text, values));
    let rows = 0;
    for (const table of tablesOf(source)) {
      await run(session, `alter table ${table} disable trigger user`);
      for await (const added of writeTable(session, source, table)) {
        rows += added;
        onRows?.(rows);
      }
      await run(session, `alter table ${table} enable trigger user`);
    }
    for (const index of indexes) await run(session, index);
    const oldest = known.at(-1)?.oldestServer ?? 1;
    await run(
      session,
      [
        ...pendingStatements({ version, oldestServer: oldest }, types),
        `update schema_version set oldest_server = ${restoringServer}`,
        'commit',
      ].join('; '),
    );
    await run(session, `analyze ${tablesOf(source).join(', ')}`);
  } finally {
    source.close();
  }
}

/** Those that the release of the backup had. */
function tablesOf(source: DatabaseSync): readonly Table[] {
  const found = source.prepare("select name from sqlite_master where type = 'table'").all();
  const names = new Set(found.map(({ name }) => String(name)));
  return (Object.keys(shapes) as Table[]).filter((table) => names.has(table));
}

/** To sort an index at the end is faster than to keep it sorted. @returns the statements that create them again. */
export async function withoutIndexes(ask: RunStatement): Promise<readonly string[]> {
  const rows = await ask(
    `select c.oid::regclass::text as name, pg_get_indexdef(c.oid) as definition
      from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indrelid = any($1::regclass[]) and not exists (
        select 1 from pg_constraint k where k.conindid = c.oid)`,
    [vaultTables.map(String)],
  );
  for (const { name } of rows) await ask(`drop index ${name}`);
  return rows.map(({ definition }) => String(definition));
}

async function* writeTable(
  session: Session,
  source: DatabaseSync,
  table: Table,
): AsyncGenerator<number> {
  const columns = columnsOf(source, table);
  const isOrdered = table === 'events';
  const names = isOrdered ? [...columns, 'rowid'] : columns;
  const arrays = names.map((name, place) => {
    const type = name === 'rowid' ? 'bigint[]' : arrayTypes[kindOf(table, name)];
    return `$${place + 1}::${type}`;
  });
  const text = `insert into ${table} (${names.join(', ')}) select * from unnest(${arrays.join(', ')})`;
  const select = source.prepare(
    `select ${columns.join(', ')} from ${table} ${isOrdered ? 'order by rowid' : ''}`,
  );
  let written = 0;
  for (const rows of batchesOf(select)) {
    const lists: unknown[] = columns.map((_, place) => rows.map((row) => row[place] ?? null));
    // Events that wait are dispatched in this order, before all that come later, whose numbers are times.
    if (isOrdered) lists.push(rows.map((_, place) => written + place + 1));
    await run(session, text, lists);
    written += rows.length;
    yield rows.length;
  }
}

/**
 * Those that the release of the backup had. Names become parts of statements here, so no other name is taken from the
 * file, which may have been exchanged since it was verified.
 */
function columnsOf(source: DatabaseSync, table: Table): readonly string[] {
  const found = source.prepare(`pragma table_info(${table})`).all();
  return found.map(({ name }) => {
    const column = shapes[table].columns.find((known) => known === name);
    if (column !== undefined) return column;
    throw new RestoreError(`The table ${table} of the backup has a column that no vault has.`);
  });
}
