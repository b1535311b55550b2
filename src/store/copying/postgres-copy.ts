/** A PostgreSQL database as {@link CopyDatabase}, over one session. */
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import { arrayTypes } from '../postgres/array-types.ts';
import { exactIntegers, readColumns } from '../postgres/backup.ts';
import { types } from '../postgres/engine.ts';
import type { RunStatement } from '../postgres/restore.ts';
import { Servers } from '../postgres/servers.ts';
import { checkServers, DatabaseServerError } from '../postgres/start.ts';
import { explainTls } from '../postgres/tls.ts';
import { explainWorker } from '../postgres/workers.ts';
import { kindOf, type SqlValue, shapes, type Table } from '../tables.ts';
import type { CopyDatabase, StoredValues } from './copy-database.ts';
import { explainFull } from './full-disk.ts';

const copyName = 'strongroom copy';
const pooled =
  'STRONGROOM_DATABASE_URL leads to a pooler, which would give up the locks of the copy between two statements. Name ' +
  'PostgreSQL itself. Nothing was changed.';

/** Every statement finds its rows by their keys. Before a table is analyzed, PostgreSQL would rather read all of it. */
const byKey =
  'set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off; ' +
  'set local enable_bitmapscan = off';
/** Triggers of older servers count stored bytes. The counters are copied as they are. */
const uncounted = "set local strongroom.counts_itself = 'yes'";

export interface PostgresCopy extends CopyDatabase {
  /** Runs one statement in the language of PostgreSQL alone. */
  readonly ask: RunStatement;
}

/** @throws DatabaseServerError, DatabaseTlsError, or the error of the driver. */
export async function openPostgresCopy(databaseUrl: string): Promise<PostgresCopy> {
  const servers = new Servers(databaseUrl, {
    application_name: copyName,
    types: exactIntegers,
  });
  try {
    await checkServers(servers);
    const session = await servers.connect({}).catch((error) => {
      throw explainTls(error);
    });
    if (!servers.knowsProcesses) throw new DatabaseServerError(pooled);
    // Hosts and database, without who signs in and how.
    const [place = ''] = databaseUrl.replace(/^(?:.*@|[^:]*:\/\/)/s, '').split('?');
    const asked = async <T>(result: Promise<T>): Promise<T> => {
      try {
        return await result;
      } catch (error) {
        throw explainFull(explainWorker(error), place);
      }
    };
    const lists = async (text: string, values: readonly unknown[] = []): Promise<SqlValue[][]> => {
      const config: pg.QueryArrayConfig = { text, values: [...values], rowMode: 'array' };
      return (await asked(session.query(config))).rows;
    };
    const run = async (...statements: readonly string[]) => {
      for (const text of statements) await asked(session.query({ text }));
    };
    const typed = (table: Table, columns: readonly string[]) =>
      columns.map((name, place) => `$${place + 1}::${arrayType(table, name)}`).join(', ');
    const isKeyIn = (table: Table) => {
      const { key } = shapes[table];
      return `(${key.join(', ')}) in (select * from unnest(${typed(table, key)}))`;
    };
    return {
      engine: 'postgres',
      types,
      ask: async (text, values = []) => (await asked(session.query({ text, values }))).rows,
      run,
      rows: (text, values = []) => lists(text.replaceAll(/\?(\d+)/g, '$$$1'), values),
      all: (table, columns) => readColumns(session, table, columns),
      insert: async (table, columns, rows) => {
        if (rows.length === 0) return;
        await lists(
          `insert into ${table} (${columns.join(', ')}) select * from unnest(${typed(table, columns)})
            on conflict do nothing`,
          columnwise(columns.length, rows),
        );
      },
      remove: async (table, keys) => {
        if (keys.length === 0) return;
        const values = columnwise(shapes[table].key.length, keys);
        await lists(`delete from ${table} where ${isKeyIn(table)}`, values);
      },
      find: async (table, keys, columns, selected = columns.join(', ')) => {
        if (keys.length === 0) return [];
        const { key } = shapes[table];
        const text = `select ${selected} from ${table} where ${isKeyIn(table)}`;
        return lists(text, columnwise(key.length, keys));
      },
      beginSnapshot: () => run(`begin isolation level repeatable read; ${byKey}`),
      beginWriting: ({ lasts }) =>
        run(`begin; ${byKey}; ${uncounted}${lasts ? '' : '; set local synchronous_commit = off'}`),
      close: () => servers.close(),
    };
  } catch (error) {
    await servers.close();
    throw error;
  }
}

/** PostgreSQL notices the end of a command that was killed once its statement is over. */
const lockTries = { most: 20, everyMs: 250 } as const;

/** Takes an advisory lock until the session ends. @returns false where another session keeps it. */
export async function takeLock({ ask }: Pick<PostgresCopy, 'ask'>, lock: number): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    const [row] = await ask(`select pg_try_advisory_lock(${lock}) as isheld`);
    if (row?.['isheld'] === true) return true;
    if (tries === lockTries.most) return false;
    await pause(lockTries.everyMs);
  }
}

function arrayType(table: Table, column: string): string {
  return column === 'rowid' ? 'bigint[]' : arrayTypes[kindOf(table, column)];
}

function columnwise(count: number, rows: readonly StoredValues[]): readonly SqlValue[][] {
  return Array.from({ length: count }, (_, place) => rows.map((row) => row[place] ?? null));
}
