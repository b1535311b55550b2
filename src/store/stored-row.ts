/**
 * Rows as the database returns them. An attacker with write access to the database may have written them, so a row that
 * the vault authenticates cannot be read until `rules/proven-row.ts` has verified it.
 */
import type { explainedTables, ProvenTable } from './row-states.ts';
import type { Key, Row, Table } from './tables.ts';

declare const unproven: unique symbol;

/**
 * A row that is yet to be verified. Only the columns that name it can be read: they find the keys that verify it, name
 * it in the log, and remove it. No other column decides anything, is shown, or is written again.
 */
export type Unproven<T extends ProvenTable> = Pick<Row<T>, NamingColumn<T>> & {
  /** Never set. */
  readonly [unproven]: T;
};

type NamingColumn<T extends ProvenTable> = keyof Row<T> &
  (keyof Key<T> | 'tenant_id' | 'version' | (typeof explainedTables)[T]['id']);

/** A row as the store returns it. */
export type RowFromStore<T extends Table> = T extends ProvenTable ? Unproven<T> : Row<T>;

type OtherTable = Exclude<Table, ProvenTable>;

/** Columns that name no row, and that tables without proofs do not have. */
type UnreadColumn = Exclude<
  { [T in ProvenTable]: keyof Row<T> }[ProvenTable],
  | { [T in ProvenTable]: NamingColumn<T> }[ProvenTable]
  | { [T in OtherTable]: keyof Row<T> }[OtherTable]
>;

/** No query satisfies it whose rows have a column that is read only once its row is verified. */
export type Unread<R> = string extends keyof R
  ? unknown
  : [keyof R & UnreadColumn] extends [never]
    ? unknown
    : never;

/**
 * All columns of the row, whether or not the vault wrote them. A test lists the files that may call this, and each call
 * says why: a tenant's row holds the keys that verify it, for example.
 */
export function unverifiedColumns<T extends ProvenTable>(row: Unproven<T>): Row<T> {
  return row as unknown as Row<T>;
}
