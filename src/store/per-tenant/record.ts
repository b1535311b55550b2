/** Bookkeeping for several tenants, which does not have to be done together. */
import type { TenantId } from '../../base/ids.ts';

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

/** Does so many of them at a time. Where one fails, none begins after it, and the others are waited for. */
export async function sideBySide<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  let hasFailed = false;
  const worker = async () => {
    for (const item of rest) {
      try {
        await work(item);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (hasFailed) return;
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: width }, worker));
  for (const outcome of workers) if (outcome.status === 'rejected') throw outcome.reason;
}
