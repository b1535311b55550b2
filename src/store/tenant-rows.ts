/** What a tenant leaves behind: the rows of every table that is a tenant's, whatever the table. */
import type { Kysely } from 'kysely';
import type { TenantId } from '../lib/ids.ts';
import { columnsOf } from './change.ts';
import type { Query } from './store.ts';
import { type SqlValue, shapes, type Table } from './tables.ts';

/** The log and what proves it outlive their tenant, whose own row says that it is deleted. */
const kept: readonly Table[] = ['tenants', 'logs', 'checkpoints', 'log_removals'];

export const purgedTables: readonly Table[] = (Object.keys(shapes) as Table[]).filter(
  (table) => !kept.includes(table),
);

type Uniform = Kysely<Record<string, Record<string, SqlValue>>>;

/** As many rows as that, each as a change names it for removal. */
export function rowsOfTenant(
  table: Table,
  { tenant, limit }: { readonly tenant: TenantId; readonly limit: number },
): Query<Record<string, SqlValue>> {
  return (db) =>
    (db as unknown as Uniform)
      .selectFrom(table)
      .select([...columnsOf(table, 'remove')])
      .where('tenant_id', '=', tenant)
      .limit(limit);
}
