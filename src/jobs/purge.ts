/** Removing what nobody can use any more: sessions that have expired, and the rows of deleted tenants. */
import { instantAfter } from '../lib/clock.ts';
import { purgeSessions } from '../vault/sessions/sessions.ts';
import { purgeDeletedTenants } from '../vault/tenants/delete.ts';
import { batchMax, clockSkewMs, type JobTools } from './batches.ts';

export async function removeSessions(tools: JobTools, stopping: AbortSignal): Promise<number> {
  let count = 0;
  for (const { tenant_id: tenant } of await tools.tenants.all()) {
    const until = instantAfter(tools.clock.now(), -clockSkewMs);
    const purge = { tenant, until, rowsMax: batchMax };
    count += await untilNone(() => purgeSessions(tools, purge), stopping);
  }
  return count;
}

export function removeTenants(tools: JobTools, stopping: AbortSignal): Promise<number> {
  return untilNone(() => purgeDeletedTenants(tools, batchMax), stopping);
}

async function untilNone(batch: () => Promise<number>, stopping: AbortSignal): Promise<number> {
  let count = 0;
  while (!stopping.aborted) {
    const done = await batch();
    if (done === 0) break;
    count += done;
  }
  return count;
}
