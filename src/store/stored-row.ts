/**
 * Rows as the database returns them. An attacker with write access to the database may have written them, so a row that
 * the vault authenticates cannot be read until `rules/proven-row.ts` has verified it.
 */
import type { ExplainedName, explainedTables } from './row-states.ts';
import type { Key, Row, Table } from './tables.ts';

declare const unproven: unique symbol;

/**
 * A row that is yet to be verified. Only the columns that name it can be read: they find the keys that verify it, name
 * it in the log, and remove it. No other column decides anything, is shown, or is written again.
 */
export type Unproven<T extends ExplainedName> = Pick<Row<T>, NamingColumn<T>> & {
  /** Never set. */
  readonly [unproven]: T;
};

type NamingColumn<T extends ExplainedName> = keyof Row<T> &
  (
    | keyof Key<T>
    | 'tenant_id'
    | 'version'
    | (typeof explainedTables)[T]['id']
    | (T extends keyof DecidingColumns ? DecidingColumns[T] : never)
  );

/**
 * What is compared before a row is opened whose sealed data authenticates it: who may open it, when it ends, and which
 * tokens are equal. Opening the row fails if one of these columns was altered, so nothing comes of what they decided.
 */
interface DecidingColumns {
  readonly tokens:
    | 'type'
    | 'container'
    | 'fingerprint'
    | 'fingerprint_expression'
    | 'deduplicated'
    | 'expires_at'
    | 'code_expires_at'
    | 'created_by'
    | 'created_at'
    | 'modified_at';
  readonly token_intents: 'type' | 'recognized' | 'expires_at' | 'code_expires_at' | 'created_at';
  readonly reactor_runs: 'reactor_id' | 'due_at' | 'expires_at' | 'created_at';
}

/** A row as the store returns it. */
export type RowFromStore<T extends Table> = T extends ExplainedName ? Unproven<T> : Row<T>;

type OtherTable = Exclude<Table, ExplainedName>;

/**
 * The same of a query that leaves the sealed data of large rows out: it is no row that can be verified until
 * {@link isWhole} says so.
 */
export type ListedRow<T extends ExplainedName> = Pick<Unproven<T>, NamingColumn<T>>;

/** Whether the query has read the data of the row. */
export function isWhole<R extends ListedRow<'tokens'> | ListedRow<'token_intents'>>(
  row: R,
): row is R & WholeRow<R> {
  return (row as { readonly data?: unknown }).data !== null;
}

type WholeRow<R> = R extends ListedRow<'tokens'> ? Unproven<'tokens'> : Unproven<'token_intents'>;

/** Columns that name no row, and that tables without proofs do not have. */
type UnreadColumn = Exclude<
  { [T in ExplainedName]: keyof Row<T> }[ExplainedName],
  | { [T in ExplainedName]: NamingColumn<T> }[ExplainedName]
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
export function unverifiedColumns<T extends ExplainedName>(row: Unproven<T> | Row<T>): Row<T> {
  return row as unknown as Row<T>;
}
