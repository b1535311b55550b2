/** Queries of jobs: whose rows are due, whatever the tenant, and what is due of a tenant by itself. */
import { sql } from 'kysely';
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { Query } from '../store.ts';
import type { Key, Row, Table } from '../tables.ts';
import type { Work } from '../work-tables.ts';

/** A tenant as a row names it: by its id, or by the number that follows from that. */
export type Owner = TenantId | number;

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
  /** So many of those that were due first are passed over. */
  readonly skip: number;
}

/** Whose rows are due, and how many of each are among the rows looked at. */
export function ownersDue({
  table,
  column,
  until,
  rowsMax,
  skip,
}: DueOwners): Query<{ readonly owner: Owner; readonly found: number }> {
  const due = sql.ref(column);
  return (db) => ({
    compile: () =>
      sql<{ owner: Owner; found: number }>`select owner, count(*) as found from
        (select tenant_id as owner from ${sql.table(table)} where ${due} <= ${until}
          order by ${due} limit ${rowsMax} offset ${skip}) due
        group by owner order by owner`.compile(db),
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
      .where('due_at', '<=', until)
      .orderBy('due_at')
      .orderBy('tenant_id')
      .limit(limit);
    if (after === undefined) return select;
    const { due_at, tenant_id } = after;
    return select.where(sql<boolean>`(due_at, tenant_id) > (${due_at}, ${tenant_id})`);
  };
}

/** All that is known of one kind of work of a tenant, due or not yet; without a kind, of every kind. */
export function workOfTenant(tenant: TenantId, work?: Work): Query<Row<'due_work'>> {
  return (db) => {
    const select = db.selectFrom('due_work').selectAll().where('tenant_id', '=', tenant);
    return work === undefined ? select : select.where('work', '=', work);
  };
}
