/** The array type of PostgreSQL for each kind of column. */
import type { ColumnKind } from '../columns.ts';

export const arrayTypes: Readonly<Record<ColumnKind, string>> = {
  text: 'text[]',
  integer: 'bigint[]',
  bytes: 'bytea[]',
  tenant: 'integer[]',
  id: 'bytea[]',
  digest: 'bytea[]',
};
