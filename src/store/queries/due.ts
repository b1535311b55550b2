/** Queries of jobs: whose rows are due, whatever the tenant, and what is due of a tenant by itself. */
import { sql } from 'kysely';
import type { Instant } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { earliest, hasTenantIn, isSafe } from '../safe-integers.ts';
import type { Query } from '../store.ts';
import type { Key, Row, Table } from '../tables.ts';
import type { Work } from '../work-tables.ts';

/** A tenant as a row names it: by its id, or by the number that follows from that. */
export type TenantOrNumber = TenantId | number;

/** A column of time that an index begins with: see `migrations/0001-due.ts`. */
export interface DueColumn {
  readonly table: Table;
  readonly column: string;
}

export interface DueOwners extends DueColumn {
  /** What was over by then is due. */
  readonly until: Instant;
  /** Rows looked at, those first that were due first. */
  readonly rowsMax: number;
}

/** Of some rows of a tenant that are due. */
export interface DueOwner {
  readonly owner: TenantOrNumber;
  readonly found: number;
  /** When the last of them was due. */
  readonly last: Instant;
}

/** Whose rows are due, and how many of each are among the rows looked at, which come after the one that is named. */
export function ownersDue(
  { table, column, until, rowsMax }: DueOwners,
  after: Pick<DueOwner, 'owner' | 'last'> | undefined,
): Query<DueOwner> {
  const due = sql.ref(column);
  const further = after ? sql`and (${due}, tenant_id) > (${after.last}, ${after.owner})` : sql``;
  return (db) => ({
    compile: () =>
      sql<DueOwner>`select owner, count(*) as found, max(due) as last from
        (select tenant_id as owner, ${due} as due from ${sql.table(table)}
          where ${due} between ${earliest} and ${until} and ${hasTenantIn(table)} ${further}
          order by ${due}, tenant_id limit ${sql.lit(rowsMax)}) due
        group by owner order by owner`.compile(db),
  });
}

/** Whether there are rows, due by then, that {@link ownersDue} leaves out. */
export function impossibleOwners({
  table,
  column,
  until,
}: Omit<DueOwners, 'rowsMax'>): Query<{ readonly found: number }> {
  const due = sql.ref(column);
  return (db) => ({
    compile: () =>
      sql<{ found: number }>`select 1 as found from ${sql.table(table)} where ${due} <= ${until}
        and not (${due} >= ${earliest} and ${hasTenantIn(table)}) limit 1`.compile(db),
  });
}

/** The ids behind the numbers, through the index that keeps numbers unique. */
export function tenantsWithNumbers(
  numbers: readonly number[],
): Query<Pick<Row<'tenants'>, 'tenant_id'>> {
  const starts = numbers.map((number) => (number >>> 0).toString(16).padStart(8, '0'));
  return (db) =>
    db
      .selectFrom('tenants')
      .select('tenant_id')
      .where(sql<string>`substr(tenant_id, 1, 8)`, 'in', starts);
}

export interface WorkPage {
  readonly work: Work;
  readonly until: Instant;
  readonly after: Key<'due_work'> | undefined;
  readonly limit: number;
}

/** What is due of any tenant, what was due first at the beginning. */
export function workDue({ work, until, after, limit }: WorkPage): Query<Row<'due_work'>> {
  return (db) => {
    const select = db
      .selectFrom('due_work')
      .selectAll()
      .where('work', '=', work)
      .where(sql<boolean>`due_at between ${earliest} and ${until}`)
      .orderBy('due_at')
      .orderBy('tenant_id')
      .limit(limit);
    if (after === undefined) return select;
    const { due_at, tenant_id } = after;
    return select.where(sql<boolean>`(due_at, tenant_id) > (${due_at}, ${tenant_id})`);
  };
}

/** Whether there is work at a time that the vault cannot have written, which {@link workDue} leaves out. */
export function impossibleWork(work: Work): Query<Pick<Row<'due_work'>, 'tenant_id'>> {
  return (db) =>
    db
      .selectFrom('due_work')
      .select('tenant_id')
      .where('work', '=', work)
      .where(sql<boolean>`due_at < ${earliest}`)
      .limit(1);
}

/** All that is known of one kind of work of a tenant, due or not yet; without a kind, of every kind. */
export function workOfTenant(tenant: TenantId, work?: Work): Query<Row<'due_work'>> {
  return (db) => {
    const select = db
      .selectFrom('due_work')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .where(isSafe('due_at'));
    return work === undefined ? select : select.where('work', '=', work);
  };
}
