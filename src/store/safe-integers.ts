/** Integers that the vault cannot have written: one that reaches a reader stops it, for all rows of its query. */
import { type AliasedRawBuilder, type RawBuilder, sql } from 'kysely';
import { kindOf, type SqlValue, shapes, type Table } from './tables.ts';

/** The number of a tenant fits: whoever can write to the embedded database may have written another one. */
export const hasTenant = sql<boolean>`tenant_id between -2147483648 and 2147483647`;

/** The same of a table, where it has numbers of tenants and not their ids. */
export function hasTenantIn(table: Table): RawBuilder<boolean> {
  return kindOf(table, 'tenant_id') === 'tenant' ? hasTenant : sql<boolean>`true`;
}

/** Before this nothing can be due. */
export const earliest = sql.raw('-9007199254740991');

export function isSafe(column: string): RawBuilder<boolean> {
  return sql<boolean>`coalesce(${sql.ref(column)}, 0) between -9007199254740991 and 9007199254740991`;
}

/**
 * A column of integers, with null for those that the vault cannot have written. Otherwise nothing could be read of
 * any row.
 */
export function safeInteger<I>(column: string): RawBuilder<I | null> {
  return sql<I | null>`case when ${isSafe(column)} then ${sql.ref(column)} end`;
}

/** All columns of a table, as {@link safeInteger}: a row with such a null can be read, and does not prove itself. */
export function readableColumns(table: Table): AliasedRawBuilder<SqlValue, string>[] {
  const { columns, kinds } = shapes[table];
  return columns.map((column, place) =>
    (kinds[place] === 'integer'
      ? safeInteger<number>(column)
      : sql<SqlValue>`${sql.ref(column)}`
    ).as(column),
  );
}

/** Whether a row can be read whole. */
export function isSafeRow(table: Table): RawBuilder<boolean> {
  const { columns, kinds } = shapes[table];
  const integers = columns.filter((_, place) => kinds[place] === 'integer');
  return sql<boolean>`(${sql.join(integers.map(isSafe), sql` and `)})`;
}
