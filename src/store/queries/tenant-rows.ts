/** Rows of a tenant, whatever the table: those that are due, and all that a deleted tenant leaves behind. */
import { type Kysely, sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { columnsOf } from '../change.ts';
import { isSafeRow } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { RowFromStore } from '../stored-row.ts';
import {
  type DatabaseSchema,
  type Key,
  type Row,
  type SqlValue,
  shapes,
  type Table,
  type VersionedTable,
} from '../tables.ts';
import { storedIn } from './stored.ts';

/**
 * The log and what proves it outlive their tenant, whose own row says that it is deleted. Keys of the vault are
 * no tenant's, and what is due of a tenant goes last, because its removal is a part of it.
 */
const kept: readonly Table[] = [
  'tenants',
  'logs',
  'checkpoints',
  'log_removals',
  'vault_keys',
  'due_work',
];

export const purgedTables: readonly Table[] = (Object.keys(shapes) as Table[]).filter(
  (table) => !kept.includes(table),
);

type UntypedDatabase = Kysely<Record<string, Record<string, SqlValue>>>;

/** As many rows as that, each as a change names it for removal. */
export function rowsOfTenant(
  table: Table,
  { tenant, limit }: { readonly tenant: TenantId; readonly limit: number },
): Query<Record<string, SqlValue>> {
  return (db) =>
    (db as unknown as UntypedDatabase)
      .selectFrom(table)
      .select([...columnsOf(table, 'remove')])
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .limit(limit);
}

export interface TenantPage {
  readonly tenant: TenantId;
  /** By which the rows are ordered, and of which the page begins after a value, if there is one. */
  readonly column: string;
  readonly after: string | undefined;
  readonly rowsMax: number;
}

/** Whole rows of a tenant, page by page. */
export function pageOfTenant(
  table: Table,
  { tenant, column, after, rowsMax }: TenantPage,
): Query<Record<string, SqlValue>> {
  return (db) => {
    const select = (db as unknown as UntypedDatabase)
      .selectFrom(table)
      .selectAll()
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      // Rows of earlier releases may have none, and PostgreSQL and SQLite put these in different places.
      .where(column, 'is not', null)
      .orderBy(column)
      .limit(rowsMax);
    return after === undefined ? select : select.where(column, '>', storedIn(table, column, after));
  };
}

export interface DueRows {
  readonly tenant: { readonly id: TenantId };
  /** What was over by then is due. */
  readonly until: Instant;
  readonly rowsMax: number;
  /** So many of those that are due first are passed over. */
  readonly skip: number;
}

/** The rows that are due by the instant in a column, those first that were due first. */
export function rowsDue<T extends Table>(
  table: T,
  column: keyof Row<T> & string,
  due: DueRows,
): Query<RowFromStore<T>> {
  const { columns } = shapes[table];
  return (db) =>
    dueOf(db, { table, columns, column, due }) as unknown as ReturnType<Query<RowFromStore<T>>>;
}

/** Of a row that is due, what a change names to remove it, and how much sealed data it has. */
export type SizedDue<T extends VersionedTable> = Key<T> & {
  readonly version: number;
  readonly bytes: number;
};

/** The same, but of each row no more than that: neither engine reads a value for its length. */
export function sizedDue<T extends 'tokens' | 'token_intents'>(
  table: T,
  column: keyof Row<T> & string,
  due: DueRows,
): Query<SizedDue<T>> {
  const columns = columnsOf(table, 'remove');
  return (db) =>
    dueOf(db, { table, columns, column, due }).select(
      sql<number>`octet_length(data)`.as('bytes'),
    ) as unknown as ReturnType<Query<SizedDue<T>>>;
}

/** Whole rows by their ids. */
export function rowsWithIds<T extends 'tokens' | 'token_intents'>(
  table: T,
  {
    tenant,
    column,
    ids,
  }: { readonly tenant: TenantId; readonly column: string; readonly ids: readonly string[] },
): Query<RowFromStore<T>> {
  return (db) =>
    (db as unknown as UntypedDatabase)
      .selectFrom(table as string)
      .selectAll()
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant))
      .where(
        column,
        'in',
        ids.map((id) => storedIn(table, column, id)),
      ) as unknown as ReturnType<Query<RowFromStore<T>>>;
}

/** Whether there are due rows that cannot be read, which the others here leave out. */
export function impossibleDue(
  table: Table,
  column: string,
  { tenant, until }: Pick<DueRows, 'tenant' | 'until'>,
): Query<{ readonly found: number }> {
  return (db) =>
    (db as unknown as UntypedDatabase)
      .selectFrom(table as string)
      .select(sql<number>`1`.as('found'))
      .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant.id))
      .where(column, '<=', until)
      .where(sql<boolean>`not ${isSafeRow(table)}`)
      .limit(1);
}

interface DueSelection {
  readonly table: Table;
  readonly columns: readonly string[];
  readonly column: string;
  readonly due: DueRows;
}

function dueOf(
  db: Kysely<DatabaseSchema>,
  { table, columns, column, due: { tenant, until, rowsMax, skip } }: DueSelection,
) {
  return (db as unknown as UntypedDatabase)
    .selectFrom(table)
    .select([...columns])
    .where('tenant_id', '=', storedIn(table, 'tenant_id', tenant.id))
    .where(column, '<=', until)
    .where(isSafeRow(table))
    .orderBy(column)
    .limit(rowsMax)
    .offset(skip);
}
