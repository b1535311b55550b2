/** How many rows the tables of a copy have, also of one that an earlier release wrote. */
import { sql } from 'kysely';
import type { Store } from '../store.ts';
import { shapes, type Table } from '../tables.ts';

type Reading = Pick<Store, 'select'>;

/** The tables of the vault in the file of a backup. */
export async function tablesInFile(store: Reading): Promise<readonly Table[]> {
  const query = sql<{ name: string }>`select name from sqlite_master where type = 'table'`;
  const found = await store.select((db) => ({ compile: () => query.compile(db) }));
  const names = new Set(found.map(({ name }) => name));
  return (Object.keys(shapes) as Table[]).filter((table) => names.has(table));
}

export async function countRows(
  store: Reading,
  tables: readonly Table[],
): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const table of tables) {
    const query = sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`;
    const [row] = await store.select((db) => ({ compile: () => query.compile(db) }));
    counts[table] = Number(row?.count);
  }
  return counts;
}
