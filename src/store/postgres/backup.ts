/**
 * A copy of a PostgreSQL database as of one moment, as the file of an embedded database: the columns of both engines
 * hold the same values, so a backup of either engine restores to either.
 */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { refusalOf, schemaVersion, selectState, stateOf } from '../migrations/migrate.ts';
import { BackupError, writeCopy } from '../sqlite/backup.ts';
import { migrate, withoutIndexes } from '../sqlite/database.ts';
import { type SqlValue, shapes, type Table } from '../tables.ts';
import { isDistributed } from './distribution.ts';
import { Servers } from './servers.ts';
import type { Session } from './session.ts';
import { explainTls } from './tls.ts';

export interface PostgresBackupOptions {
  readonly databaseUrl: string;
  readonly directory: string;
  /** Called with the number of rows that were copied so far. */
  readonly onRows?: (copied: number) => void;
}

/** Rows fetched at a time: a token may have a megabyte. */
const rowsAtOnce = 200;

/** An attacker may have written an integer beyond 2^53, which a backup keeps as it is. */
export const exactIntegers = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8
      ? (text: string) => (text.length < 16 ? Number(text) : BigInt(text))
      : pg.types.getTypeParser(oid, format as 'text'),
} as pg.CustomTypesConfig;

/**
 * Resolves when the copy is on the disk under its name, and complete. It holds no root key.
 * @returns the number of its rows.
 * @throws BackupError when the place is taken, or when the database cannot be copied as of one moment.
 */
export async function backUpPostgres({
  databaseUrl,
  directory,
  onRows,
}: PostgresBackupOptions): Promise<number> {
  const servers = new Servers(databaseUrl, {
    application_name: 'strongroom backup',
    types: exactIntegers,
  });
  try {
    const session = await servers.connectToRead({}).catch((error) => {
      throw explainTls(error);
    });
    try {
      await session.query({ text: 'begin isolation level repeatable read read only' });
      await requireCopyable(session);
      return await writeCopy(directory, (partial) => copyTables(session, partial, onRows));
    } finally {
      await session.close();
    }
  } finally {
    await servers.close();
  }
}

async function requireCopyable(session: Session): Promise<void> {
  const ask = (text: string) => session.query({ text });
  if (await isDistributed(ask)) {
    throw new BackupError(
      'The tables are distributed over several servers, which have no common moment to copy. No backup was made. ' +
        'Back up all servers with citus_create_restore_point and base backups, or stop the servers of the vault and ' +
        'copy it with "strongroom database copy" (docs/backup.md).',
    );
  }
  const { rows } = await ask(`select to_regclass('schema_version') is not null as has`);
  if (rows[0]?.has !== true) throw new BackupError('There is no vault in the database.');
  const found = stateOf((await ask(selectState)).rows[0]);
  const refusal = refusalOf(found);
  if (refusal) throw refusal;
  if (found.version < schemaVersion) {
    throw new BackupError('An older release wrote this database. Use that release.');
  }
}

async function copyTables(
  session: Session,
  partial: string,
  onRows: PostgresBackupOptions['onRows'],
): Promise<number> {
  const copy = new DatabaseSync(partial);
  try {
    // The file is worth something only once it is complete. Until then no crash has to leave it readable.
    copy.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -32000');
    copy.exec('begin');
    migrate(copy);
    const indexes = withoutIndexes(copy);
    let rows = 0;
    for (const table of Object.keys(shapes) as Table[]) {
      for await (const added of copyTable(session, copy, table)) {
        rows += added;
        onRows?.(rows);
      }
    }
    for (const index of indexes) copy.exec(index);
    copy.exec('commit');
    return rows;
  } finally {
    copy.close();
  }
}

async function* copyTable(
  session: Session,
  copy: DatabaseSync,
  table: Table,
): AsyncGenerator<number> {
  const { columns } = shapes[table];
  const places = columns.map(() => '?').join(', ');
  const insert = copy.prepare(`insert into ${table} (${columns.join(', ')}) values (${places})`);
  for await (const rows of readColumns(session, table, columns)) {
    for (const row of rows) insert.run(...row);
    yield rows.length;
  }
}

/** All rows of a table in the transaction of the session, with the values of these columns. */
export async function* readColumns(
  session: Session,
  table: Table,
  columns: readonly string[],
): AsyncGenerator<readonly SqlValue[][]> {
  // The embedded engine finds in its own order of rows in which order events wait.
  const order = table === 'events' ? 'order by rowid' : '';
  const text = `declare rows no scroll cursor for select ${columns.join(', ')} from ${table} ${order}`;
  await session.query({ text });
  let next = fetchRows(session);
  for (;;) {
    const rows = await next;
    if (rows.length === 0) break;
    // PostgreSQL reads ahead while these are used.
    next = fetchRows(session);
    next.catch(() => undefined);
    yield rows;
  }
  await session.query({ text: 'close rows' });
}

async function fetchRows(session: Session): Promise<readonly SqlValue[][]> {
  const fetch: pg.QueryArrayConfig = { text: `fetch ${rowsAtOnce} from rows`, rowMode: 'array' };
  return (await session.query(fetch)).rows;
}
