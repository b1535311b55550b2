/** The embedded database as {@link CopyDatabase}. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { batchesOf } from '../sqlite/batches.ts';
import { busyTimeoutMs, types } from '../sqlite/database.ts';
import { type SqlValue, shapes, type Table } from '../tables.ts';
import { type CopyDatabase, parameters, type StoredValues } from './copy-database.ts';
import { explainFull } from './full-disk.ts';

/** Prepared statements to keep: a few for each table. */
const statementsMax = 256;

export function openSqliteCopy(file: string, { isReadOnly = false } = {}): CopyDatabase {
  const database = new DatabaseSync(file, { readOnly: isReadOnly, timeout: busyTimeoutMs });
  const prepared = new Map<string, StatementSync>();

  function statement(text: string): StatementSync {
    const known = prepared.get(text);
    if (known) return known;
    if (prepared.size >= statementsMax) prepared.clear();
    const made = database.prepare(text);
    made.setReturnArrays(true);
    // An attacker may have written an integer beyond 2^53, which a copy keeps as it is.
    made.setReadBigInts(true);
    prepared.set(text, made);
    return made;
  }

  const sameKey = (table: Table) =>
    shapes[table].key.map((name, place) => `${name} is ?${place + 1}`).join(' and ');

  const writing = (work: () => void) => {
    try {
      work();
    } catch (error) {
      throw explainFull(error, file);
    }
  };

  const all = (text: string, values: StoredValues) =>
    (statement(text).all(...values) as unknown[] as SqlValue[][]).map(withBuffers);

  return {
    engine: 'sqlite',
    types,
    run: async (...statements) => {
      // A statement that was prepared before a table changed is compiled again by itself.
      writing(() => {
        for (const one of statements) database.exec(one);
      });
    },
    rows: async (text, values = []) => all(text, values),
    all: async function* (table, columns) {
      yield* batchesOf(database.prepare(`select ${columns.join(', ')} from ${table}`));
    },
    insert: async (table, columns, rows) => {
      const into = `insert into ${table} (${columns.join(', ')}) values (${parameters(columns.length)})`;
      const insert = statement(`${into} on conflict do nothing`);
      writing(() => {
        for (const row of rows) insert.run(...row);
      });
    },
    remove: async (table, keys) => {
      const remove = statement(`delete from ${table} where ${sameKey(table)}`);
      writing(() => {
        for (const key of keys) remove.run(...key);
      });
    },
    find: async (table, keys, columns, selected = columns.join(', ')) => {
      const text = `select ${selected} from ${table} where ${sameKey(table)}`;
      return keys.flatMap((key) => all(text, key));
    },
    beginSnapshot: async () => {
      database.exec('begin');
      // The first read decides which state the transaction sees.
      database.prepare('select count(*) from schema_version').get();
    },
    beginWriting: async ({ lasts }) => {
      database.exec(`pragma synchronous = ${lasts ? 'full' : 'normal'}; begin immediate`);
    },
    close: async () => {
      if (database.isOpen) database.close();
    },
  };
}

/** The driver of the other engine writes lists of bytes by their buffers. */
function withBuffers(row: readonly SqlValue[]): StoredValues {
  return row.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
}
