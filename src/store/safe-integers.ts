/** Integers that the vault cannot have written. The driver fails on one of them, for all rows of the query. */
import { type AliasedRawBuilder, type RawBuilder, sql } from 'kysely';
import { kindOf, type SqlValue, shapes, type Table } from './tables.ts';

/**
 * The tenant's number is in range. An attacker with write access to the embedded database may have written another
 * one.
 */
export const hasTenant = sql<boolean>`tenant_id between -2147483648 and 2147483647`;

/** The same for a table that stores numbers of tenants rather than ids. */
export function hasTenantIn(table: Table): RawBuilder<boolean> {
  return kindOf(table, 'tenant_id') === 'tenant' ? hasTenant : sql<boolean>`true`;
}

/** Nothing can be due before this time. */
export const earliest = sql.raw('-9007199254740991');

export function isSafe(column: string): RawBuilder<boolean> {
  return sql<boolean>`coalesce(${sql.ref(column)}, 0) between -9007199254740991 and 9007199254740991`;
}

/**
 * A column of integers, with null for those that the vault cannot have written. Without it, no row of the query could
 * be read.
 */
export function safeInteger<I>(column: string): RawBuilder<I | null> {
  return sql<I | null>`case when ${isSafe(column)} then ${sql.ref(column)} end`;
}

/**
 * All columns of a table, each as {@link safeInteger}. A row with such a null can be read, but its proof is invalid.
 */
export function readableColumns(table: Table): AliasedRawBuilder<SqlValue, string>[] {
  const { columns, kinds } = shapes[table];
  return columns.map((column, place) =>
    (kinds[place] === 'integer'
      ? safeInteger<number>(column)
      : sql<SqlValue>`${sql.ref(column)}`
    ).as(column),
  );
}

/** Whether all integers of a row are safe. */
export function isSafeRow(table: Table): RawBuilder<boolean> {
  const { columns, kinds } = shapes[table];
  const integers = columns.filter((_, place) => kinds[place] === 'integer');
  return sql<boolean>`(${sql.join(integers.map(isSafe), sql` and `)})`;
}
