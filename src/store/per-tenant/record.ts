/** Bookkeeping for several tenants, which does not have to be done together. */
import type { TenantId } from '../../lib/ids.ts';

/**
 * One call for the rows of each tenant, all at once, because a statement on a distributed database stays within one
 * tenant. On others the calls are one group of a lane, and so one statement.
 */
export async function byTenant<R extends { readonly tenant_id: TenantId }>(
  rows: readonly R[],
  record: (rows: readonly R[]) => Promise<unknown>,
): Promise<void> {
  await Promise.all([...Map.groupBy(rows, ({ tenant_id }) => tenant_id).values()].map(record));
}
