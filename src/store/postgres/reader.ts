/** Reads by key on PostgreSQL: those that arrive in one turn of the event loop share one query. */
import { VaultError } from '../../lib/errors.ts';
import { readRows, storedKey } from '../stored-form.ts';
import { type Key, kindOf, type Row, type SqlValue, shapes, type Table } from '../tables.ts';
import { arrayTypes } from './array-types.ts';

type RunRead = (sql: string, values: unknown[], name: string) => Promise<unknown[]>;

interface PendingRead {
  readonly values: readonly SqlValue[];
  resolve(row: unknown): void;
  reject(error: unknown): void;
}

export function createPostgresReader(query: RunRead) {
  const waiting = new Map<Table, PendingRead[]>();

  async function fetchWaiting(table: Table): Promise<void> {
    const batch = waiting.get(table) ?? [];
    waiting.delete(table);
    await fetch(table, batch);
  }

  async function fetch(table: Table, batch: readonly PendingRead[]): Promise<void> {
    const { key } = shapes[table];
    try {
      const keys = batch.map((pending) => storedKey(table, pending.values));
      const lists = key.map((_, column) => keys.map((values) => values[column]));
      const found = await query(sqlOf(table), lists, `${table} by key`);
      const rows = readRows(found as Record<string, SqlValue>[]);
      const byKey = new Map(
        rows.map((row) => [JSON.stringify(key.map((column) => row[column])), row]),
      );
      for (const pending of batch) pending.resolve(byKey.get(JSON.stringify(pending.values)));
    } catch (error) {
      // A row that nobody can read fails for those alone who ask for it.
      const isOfOneRow = error instanceof VaultError && error.code === 'integrity';
      if (isOfOneRow && batch.length > 1) {
        await Promise.all(batch.map((pending) => fetch(table, [pending])));
      } else {
        for (const pending of batch) pending.reject(error);
      }
    }
  }

  return <T extends Table>(table: T, key: Key<T>): Promise<Row<T> | undefined> =>
    new Promise((resolve, reject) => {
      const values = shapes[table].key.map(
        (column) => (key as Record<string, SqlValue>)[column] ?? null,
      );
      const batch = waiting.get(table);
      const pending: PendingRead = { values, resolve: resolve as PendingRead['resolve'], reject };
      if (batch) {
        batch.push(pending);
      } else {
        waiting.set(table, [pending]);
        setImmediate(() => void fetchWaiting(table));
      }
    });
}

function sqlOf(table: Table): string {
  const { key } = shapes[table];
  const lists = key.map((column, index) => `$${index + 1}::${arrayTypes[kindOf(table, column)]}`);
  const same = key.map((column) => `r.${column} = k.${column}`);
  // One look-up for each key, whatever the planner believes: until a table was analysed for the first
  // time it would rather read all of it. "offset 0" keeps it from turning this into a join.
  return `select t.* from (select distinct * from unnest(${lists.join(', ')}) as k (${key.join(', ')})) k
    cross join lateral (select * from ${table} r where ${same.join(' and ')} offset 0) t`;
}
