/** The columns that tables are made of, and what a table says of itself. */
import type { TenantId } from '../base/ids.ts';

/**
 * The vault sees strings in columns of the last three kinds, and the database stores fewer bytes: a tenant's number,
 * a UUID or any other id, and a digest in base64url. See `stored-form.ts`.
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
/** The proof that the vault wrote the row: a keyed digest of its other columns. */
export const proof = text<string>;
export const optional = <T>(column: Column<T>): Column<T | null> => column;

export interface TableSpec {
  /** The primary key, which begins with the tenant so that tenants can be spread over machines. */
  readonly key: readonly string[];
  /** Further constraints by name; the index is called `<table>_<name>`. */
  readonly unique: Readonly<Record<string, readonly string[]>>;
  /**
   * The table that owns these rows: they carry its key, and are removed with its row. The index that finds them is
   * called `<table>_by_owner`.
   */
  readonly owner?: string;
  readonly columns: Readonly<Record<string, Column<unknown>>>;
}
