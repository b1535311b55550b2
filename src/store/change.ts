/** A change: everything one request alters, as data. All of it is committed, or nothing. */
import type { LogEntry } from '../lib/log-chain.ts';
import {
  type Key,
  type Row,
  type SqlValue,
  shapes,
  type Table,
  type VersionedTable,
} from './tables.ts';

export interface Change {
  /** Rows that must not exist yet, neither by key nor by a unique constraint. */
  readonly insert?: { readonly [T in Table]?: readonly Row<T>[] };
  /** Rows that follow the stored row of the same key whose version is one less. */
  readonly replace?: { readonly [T in VersionedTable]?: readonly Row<T>[] };
  /** Rows that must exist; of a versioned table, in exactly the version named. */
  readonly remove?: { readonly [T in Table]?: readonly Removal<T>[] };
  /** What the audit log says of it. An effect without an entry is not a change. */
  readonly entries: readonly [LogEntry, ...LogEntry[]];
}

type Removal<T extends Table> = T extends VersionedTable ? Key<T> & { version: number } : Key<T>;

/** Why a change was refused: the constraint (`tokens.key`, `tokens.fingerprint`) or `tokens.version`. */
export type Precondition = `${Table}.${string}`;

export type Outcome = { readonly conflict?: Precondition };

/** What a statement does to one row; the engines know nothing else. */
export interface Operation {
  readonly table: Table;
  readonly action: 'insert' | 'replace' | 'remove';
  /** Insert and replace: all columns in their order. Remove: the key, then the version if there is one. */
  readonly values: readonly SqlValue[];
}

/** A change as the engines take it: flat values, no classes. */
export interface FlatChange {
  readonly operations: readonly Operation[];
  readonly entries: readonly LogEntry[];
}

export function flatten(change: Change): FlatChange {
  return { operations: operationsOf(change), entries: change.entries };
}

type Rows = Readonly<Record<string, readonly Readonly<Record<string, SqlValue>>[] | undefined>>;

const tablesInOrder = Object.keys(shapes) as readonly Table[];

/**
 * Lists what a change does, in the order it must happen: removals first, so that a key can be handed
 * from one row to another, and then by table as the schema lists them, not as the change does.
 */
function operationsOf(change: Change): Operation[] {
  const operations: Operation[] = [];
  for (const action of ['remove', 'replace', 'insert'] as const) {
    const rowsByTable = change[action] as Rows | undefined;
    if (!rowsByTable) continue;
    for (const table of tablesInOrder) {
      const rows = rowsByTable[table];
      if (!rows) continue;
      const columns = action === 'remove' ? removalColumns(table) : shapes[table].columns;
      for (const row of rows) {
        const values = columns.map((column) => row[column] ?? null);
        operations.push({ table, action, values });
      }
    }
  }
  return operations;
}

/** The columns that a removal names: the key, and the version where rows have one. */
export function removalColumns(table: Table): readonly string[] {
  const shape = shapes[table];
  return shape.versioned ? [...shape.key, 'version'] : shape.key;
}
