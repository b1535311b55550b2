/** How many bytes applications have stored: as the database counts them with each commit, and by their rows. */
import { sql } from 'kysely';
import type { ApplicationId, TenantId } from '../../base/ids.ts';
import { type CountedName, ownerSql, sizeSql } from '../migrations/stored-sizes.ts';
import { correctionSlot } from '../storage-tables.ts';
import type { Query } from '../store.ts';
import { storedForm } from '../stored-form.ts';
import { type AnyRow, type Key, kindOf, type SqlValue, shapes } from '../tables.ts';
import type { AnyDatabase } from './key-versions.ts';
import { storedIn, storedTenant } from './stored.ts';

export interface ApplicationBytes {
  readonly application_id: ApplicationId;
  /** PostgreSQL gives sums as text. */
  readonly bytes: number | string;
}

/** Of each application of the tenant that has ever stored any. */
export function storedBytesOf(tenant: TenantId): Query<ApplicationBytes> {
  return (db) =>
    db
      .selectFrom('stored_bytes')
      .select(({ fn }) => ['application_id', fn.sum<number | string>('bytes').as('bytes')])
      .where('tenant_id', '=', storedTenant(tenant))
      .groupBy('application_id');
}

/**
 * Of a counter that the vault may have written. Together the slots of an application stay below 2^53, and so does what
 * corrects them: a sum that no number can hold would keep the tenant from being counted again.
 */
const isPossible = sql<boolean>`(slot between 0 and ${sql.lit(correctionSlot - 1)}
  and bytes between -8796093022208 and 8796093022208
  or slot = ${sql.lit(correctionSlot)} and bytes between -4503599627370496 and 4503599627370496)`;

type CounterKey = Key<'stored_bytes'>;

/**
 * Some counters that an attacker wrote: the vault counts no such slot and no such number. Reading them throws
 * `integrity` if a slot is beyond 2^53, because nothing can name it.
 */
export function impossibleCounters(tenant: TenantId, limit: number): Query<CounterKey> {
  return (db) =>
    db
      .selectFrom('stored_bytes')
      .select(['tenant_id', 'application_id', 'slot'])
      .where('tenant_id', '=', storedTenant(tenant))
      .where(sql<boolean>`not ${isPossible}`)
      .limit(limit) as unknown as ReturnType<Query<CounterKey>>;
}

export interface CountedBytes extends ApplicationBytes {
  /** Of the slot for corrections; null if there is none. */
  readonly corrected: number | string | null;
}

/** The counters of each application, without those that are impossible. */
export function countedBytesOf(tenant: TenantId): Query<CountedBytes> {
  const corrected = sql<number>`sum(case when slot = ${sql.lit(correctionSlot)} then bytes end)`;
  return (db) =>
    db
      .selectFrom('stored_bytes')
      .select(({ fn }) => [
        'application_id',
        fn.sum<number | string>('bytes').as('bytes'),
        corrected.as('corrected'),
      ])
      .where('tenant_id', '=', storedTenant(tenant))
      .where(isPossible)
      .groupBy('application_id');
}

interface RowsAfter {
  readonly tenant: TenantId;
  /** The key after which they begin. */
  readonly after: AnyRow | undefined;
}

/** The key of the last row of a page; no row if there are fewer rows. */
export function endOfPage(
  table: CountedName,
  { tenant, after, rowsMax }: RowsAfter & { readonly rowsMax: number },
): Query<AnyRow> {
  const order = orderOf(table);
  return (db) => {
    const select = (db as unknown as AnyDatabase)
      .selectFrom(table as string)
      .select(order)
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .where(isAfter(table, after))
      .limit(1)
      .offset(rowsMax - 1);
    return order.reduce((ordered, column) => ordered.orderBy(column), select);
  };
}

/** What the rows of a page count as, by the application that they count for. */
export function bytesOfRows(
  table: CountedName,
  { tenant, after, end }: RowsAfter & { readonly end: AnyRow | undefined },
): Query<ApplicationBytes> {
  const owner = sql<SqlValue>`${sql.raw(ownerSql(table, table))}`;
  const bytes = sql<SqlValue>`sum(${sql.raw(sizeSql(table, table))})`;
  return (db) =>
    (db as unknown as AnyDatabase)
      .selectFrom(table as string)
      .select([owner.as('application_id'), bytes.as('bytes')])
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .where(isAfter(table, after))
      .where(isUpTo(table, end))
      .groupBy(owner) as unknown as ReturnType<Query<ApplicationBytes>>;
}

function isAfter(table: CountedName, row: AnyRow | undefined) {
  return row ? sql<boolean>`${placesOf(table)} > ${valuesOf(table, row)}` : always;
}

function isUpTo(table: CountedName, row: AnyRow | undefined) {
  return row ? sql<boolean>`${placesOf(table)} <= ${valuesOf(table, row)}` : always;
}

const always = sql<boolean>`1 = 1`;

function orderOf(table: CountedName): string[] {
  return shapes[table].key.filter((column) => column !== 'tenant_id');
}

const placesOf = (table: CountedName) =>
  sql`(${sql.join(orderOf(table).map((column) => sql.ref(column)))})`;

function valuesOf(table: CountedName, row: AnyRow) {
  const values = orderOf(table).map((column) =>
    storedForm(kindOf(table, column), row[column] ?? null),
  );
  return sql`(${sql.join(values.map((value) => sql`${value}`))})`;
}
