/** A change: everything one request alters, as data. All of it is committed, or nothing. */
import type { ConsoleLinkId, ConsoleSessionId, KeyId, SignInMethodId } from '../base/ids.ts';
import {
  type AmendedTable,
  type Amendment,
  amendedColumns,
  type PartialUpdate,
  type RefingerprintedTable,
  type ResealedTable,
  type Resealing,
} from './amendments.ts';
import { growsStorage, type StorageCeiling } from './growth.ts';
import type { WrittenEntry } from './log-chain/block.ts';
import type { LogEntry } from './log-chain/entries.ts';
import type { Prover } from './log-chain/proof.ts';
import { statedEntries, type TokenRemains } from './row-states.ts';
import {
  type AnyRow,
  type Key,
  type Row,
  type SqlValue,
  shapes,
  type Table,
  type TableShape,
  type VersionedTable,
} from './tables.ts';

export interface Change {
  /** Rows that must not exist yet, neither by key nor by a unique constraint. */
  readonly insert?: { readonly [T in Table]?: readonly Row<T>[] };
  /** Rows that follow the stored row of the same key whose version is one less. */
  readonly replace?: { readonly [T in VersionedTable]?: readonly Row<T>[] };
  /** Rows of which only the sealed columns change, because they are sealed under another key: see `amendments.ts`. */
  readonly reseal?: { readonly [T in ResealedTable]?: readonly Resealing<T>[] };
  /** The same where the fingerprint changes too. */
  readonly refingerprint?: { readonly [T in RefingerprintedTable]?: readonly Resealing<T>[] };
  /** What a step of a rotation notes together with what it does, and corrections of counters. */
  readonly amend?: Pick<NonNullable<Bookkeeping['amend']>, 'key_rotations' | 'stored_bytes'>;
  /** Rows that must exist; of a versioned table, in exactly the version named. What they own goes too. */
  readonly remove?: { readonly [T in Table]?: readonly RemovedRow<T>[] };
  /** The log entries of the change. An effect without an entry is not a change. */
  readonly entries: readonly [LogEntry, ...LogEntry[]];
  /** Set for a deleted tenant: its keys are destroyed, so its rows can no longer be verified. */
  readonly unexplained?: true;
  /** The keys that prove the blocks of the entries; absent for tenants without keys. */
  readonly provers?: readonly Prover[];
  /** The `CDN-Loop` of the request that makes the change. Requests that deliver its events carry it on. */
  readonly loop?: string;
  /** Limits that the result must not exceed; see `access/tenants/storage-quotas.ts`. */
  readonly ceilings?: readonly StorageCeiling[];
}

/**
 * The vault's own bookkeeping: rows that callers never see and that change no data, and therefore have no log entry.
 * All of it is committed, or nothing.
 */
export interface Bookkeeping {
  readonly insert?: { readonly [T in BookkeptTable]?: readonly Row<T>[] };
  /** Rows of which some columns change, unless another writer was faster: see `amendments.ts`. */
  readonly amend?: { readonly [T in AmendedTable]?: readonly Amendment<T>[] };
  readonly remove?: { readonly [T in BookkeptTable]?: readonly RemovedRow<T>[] };
}

/** No other table is written without an entry. */
export type BookkeptTable =
  | AmendedTable
  | 'alert_marks'
  | 'due_work'
  | 'fingerprint_claims'
  | 'log_index'
  | 'webhook_failures';

/** Also the id that the log uses, where the key of the row is another; for a token, what its erasure receipt needs. */
export type RemovedRow<T extends Table> = T extends VersionedTable
  ? Key<T> & { version: number } & (T extends 'api_keys'
        ? { key_id: KeyId }
        : T extends 'tokens'
          ? TokenRemains
          : T extends 'console_links'
            ? { link_id: ConsoleLinkId }
            : T extends 'console_sessions'
              ? { session_id: ConsoleSessionId }
              : T extends 'sign_in_methods'
                ? { method_id: SignInMethodId }
                : unknown)
  : Key<T>;

/** Why a change was refused: the constraint (`tokens.key`, `tokens.fingerprint`) or `tokens.version`. */
export type Precondition = `${Table}.${string}`;

export type CommitOutcome = { readonly conflict?: Precondition };

/** The effect of a statement on one row; the engines know nothing else. */
export interface RowOperation {
  readonly table: Table;
  /** Clear removes the rows, however many, that one row of the table's owner owns. */
  readonly action: 'insert' | 'replace' | PartialUpdate | 'remove' | 'clear';
  /** Of the columns that {@link columnsOf} lists. */
  readonly values: readonly SqlValue[];
}

/** A change as the engines take it: flat values, and keys. */
export interface FlatChange {
  readonly operations: readonly RowOperation[];
  readonly entries: readonly WrittenEntry[];
  readonly provers: readonly Prover[];
  readonly ceilings: readonly StorageCeiling[];
  /** See `growth.ts`. */
  readonly grows: boolean;
}

export function flatten(change: Change): FlatChange {
  const { provers = [], ceilings = [] } = change;
  return {
    operations: operationsOf(change),
    entries: statedEntries(change),
    provers,
    ceilings,
    grows: growsStorage(change),
  };
}

export function flattenBookkeeping(work: Bookkeeping): FlatChange {
  return { operations: operationsOf(work), entries: [], provers: [], ceilings: [], grows: false };
}

const actionsInOrder = ['remove', 'replace', 'amend', 'reseal', 'refingerprint', 'insert'] as const;
type Action = (typeof actionsInOrder)[number];

/** By table. */
export type ChangedRows = Readonly<Record<string, readonly AnyRow[] | undefined>>;

const tablesInOrder = Object.keys(shapes) as readonly Table[];

const orderOf = new Map(tablesInOrder.map((table, order) => [table, order]));

/**
 * Lists what a change does, in the order it must happen: removals first, so that a key can be handed
 * from one row to another, and then by table as the schema lists them, not as the change does.
 */
function operationsOf(change: Partial<Record<Action, object>>): RowOperation[] {
  const operations: RowOperation[] = [];
  for (const action of actionsInOrder) {
    const rowsByTable = change[action] as ChangedRows | undefined;
    if (!rowsByTable) continue;
    for (const table of tablesOf(rowsByTable)) {
      for (const row of rowsByTable[table] ?? []) {
        operations.push(operationOf(table, action, row));
        if (action !== 'remove') continue;
        for (const owned of shapes[table].owned) operations.push(operationOf(owned, 'clear', row));
      }
    }
  }
  return operations;
}

/** The tables with rows, which are few. */
function tablesOf(rowsByTable: ChangedRows): readonly Table[] {
  const tables = Object.keys(rowsByTable).filter((table) => rowsByTable[table]?.length) as Table[];
  if (tables.length < 2) return tables;
  return tables.sort((one, other) => (orderOf.get(one) ?? 0) - (orderOf.get(other) ?? 0));
}

function operationOf(table: Table, action: RowOperation['action'], row: AnyRow): RowOperation {
  return { table, action, values: columnsOf(table, action).map((column) => row[column] ?? null) };
}

/**
 * The columns whose values an operation gives. Insert and replace: all of them. Partial updates: the key, the columns
 * to set, and the columns with an expected value. Remove: the key, and the version if rows have one. Clear: the key of
 * the owner.
 */
export function columnsOf(table: Table, action: RowOperation['action']): readonly string[] {
  return columnsByAction[action][table];
}

const columnsByAction = {
  insert: byTable(({ columns }) => columns),
  replace: byTable(({ columns }) => columns),
  amend: byTable((shape) => amendedColumns('amend', shape)),
  reseal: byTable((shape) => amendedColumns('reseal', shape)),
  refingerprint: byTable((shape) => amendedColumns('refingerprint', shape)),
  remove: byTable(({ key, versioned }) => (versioned ? [...key, 'version'] : key)),
  clear: byTable(({ owner }) => (owner === undefined ? [] : shapes[owner].key)),
} as const;

function byTable(columns: (shape: TableShape) => readonly string[]) {
  return Object.fromEntries(
    tablesInOrder.map((table) => [table, columns(shapes[table])]),
  ) as Readonly<Record<Table, readonly string[]>>;
}
