/** The columns that tables are made of, and what a table says of itself. */
import type { TenantId } from '../base/ids.ts';

/**
 * Of the last three the vault sees texts and the database fewer bytes: a tenant's number, a UUID or any
 * other id, a digest in base64url. See `stored-form.ts`.
 */
export type ColumnKind = 'text' | 'integer' | 'bytes' | 'tenant' | 'id' | 'digest';

export interface Column<T> {
  readonly kind: ColumnKind;
  /** Never set; carries the type of the column's values. */
  readonly value?: T;
}

export const text = <T extends string = string>(): Column<T> => ({ kind: 'text' });
export const integer = <T extends number = number>(): Column<T> => ({ kind: 'integer' });
export const bytes = (): Column<Uint8Array> => ({ kind: 'bytes' });
export const tenant = (): Column<TenantId> => ({ kind: 'tenant' });
export const id = <T extends string = string>(): Column<T> => ({ kind: 'id' });
export const digest = (): Column<string> => ({ kind: 'digest' });
/** That the row is as the vault made it: keyed digest of its other columns. */
export const proof = text<string>;
export const optional = <T>(column: Column<T>): Column<T | null> => column;

export interface TableSpec {
  /** The primary key, which begins with the tenant so that tenants can be spread over machines. */
  readonly key: readonly string[];
  /** Further constraints by name; the index is called `<table>_<name>`. */
  readonly unique: Readonly<Record<string, readonly string[]>>;
  /**
   * The table to whose rows these belong: they carry its key, and go when that row goes. The index by
   * which they are found is called `<table>_by_owner`.
   */
  readonly owner?: string;
  readonly columns: Readonly<Record<string, Column<unknown>>>;
}
