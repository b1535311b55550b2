/** A database whose rows are copied as they are stored: the few statements that a copy needs, on either engine. */
import type { ColumnTypes } from '../migrations/column-types.ts';
import { type SqlValue, shapes, type Table } from '../tables.ts';

/** The values of a row, or of its key, as the database stores them. */
export type StoredValues = readonly SqlValue[];

export interface CopyDatabase {
  readonly engine: 'sqlite' | 'postgres';
  readonly types: ColumnTypes;
  /** Runs statements that return nothing, one after another. */
  run(...statements: readonly string[]): Promise<void>;
  /** Runs one statement with the parameters `?1` and so on, which it may name more than once. */
  rows(text: string, values?: StoredValues): Promise<readonly StoredValues[]>;
  /** All rows of a table in the current transaction, in no particular order, in constant memory. */
  all(table: Table, columns: readonly string[]): AsyncIterable<readonly StoredValues[]>;
  /** Rows with the key, or another unique value, of a row that is there are left out. */
  insert(table: Table, columns: readonly string[], rows: readonly StoredValues[]): Promise<void>;
  remove(table: Table, keys: readonly StoredValues[]): Promise<void>;
  /**
   * These columns of the rows with the keys that exist.
   * @param selected the columns as expressions.
   */
  find(
    table: Table,
    keys: readonly StoredValues[],
    columns: readonly string[],
    selected?: string,
  ): Promise<readonly StoredValues[]>;
  /** Begins a transaction, all of whose reads see one state. */
  beginSnapshot(): Promise<void>;
  /** Begins a transaction that writes. One that does not last may be undone by a crash of the machine. */
  beginWriting(options: { readonly lasts: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** The work as one transaction of what {@link CopyDatabase.beginWriting} began. */
export async function writing<T>(
  database: CopyDatabase,
  work: () => Promise<T>,
  { lasts = false } = {},
): Promise<T> {
  await database.beginWriting({ lasts });
  return ending(database, work);
}

/** The work on one state of the database. */
export async function onSnapshot<T>(database: CopyDatabase, work: () => Promise<T>): Promise<T> {
  await database.beginSnapshot();
  return ending(database, work);
}

async function ending<T>(database: CopyDatabase, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    await database.run('commit');
    return result;
  } catch (error) {
    // SQLite has already rolled back by itself after some failures, such as a full disk.
    await database.run('rollback').catch(() => undefined);
    throw error;
  }
}

export const allTables = Object.keys(shapes) as readonly Table[];

export function keyOf(table: Table, row: StoredValues): StoredValues {
  const { columns, key } = shapes[table];
  return key.map((name) => row[columns.indexOf(name)] ?? null);
}

export function bytesOf(row: StoredValues): number {
  let bytes = 0;
  for (const value of row) {
    bytes += typeof value === 'string' || value instanceof Uint8Array ? value.length : 8;
  }
  return bytes;
}

/** `?from, …`, for so many values. */
export function parameters(count: number, from = 1): string {
  return Array.from({ length: count }, (_, place) => `?${from + place}`).join(', ');
}

/** A statement that returns a row if the database has the table. */
export function selectTable(engine: CopyDatabase['engine'], name: string): string {
  return engine === 'sqlite'
    ? `select 1 as found from sqlite_schema where name = '${name}'`
    : `select 1 as found where to_regclass('${name}') is not null`;
}
