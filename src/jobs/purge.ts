/** Removing what nobody can use any more: sessions that have expired, and the rows of deleted tenants. */
import { instantAfter } from '../lib/clock.ts';
import { purgeSessions } from '../vault/sessions/sessions.ts';
import { purgeDeletedTenants } from '../vault/tenants/delete.ts';
import { clockSkewMs, type JobTools } from './batches.ts';
import { createPace } from './pace.ts';

export async function removeSessions(tools: JobTools, stopping: AbortSignal): Promise<number> {
  let count = 0;
  for (const { tenant_id: tenant } of await tools.tenants.all()) {
    const until = instantAfter(tools.clock.now(), -clockSkewMs);
    const purge = (rowsMax: number) => purgeSessions(tools, { tenant, until, rowsMax });
    count += await untilNone(purge, tools, stopping);
  }
  return count;
}

export function removeTenants(tools: JobTools, stopping: AbortSignal): Promise<number> {
  return untilNone((rowsMax) => purgeDeletedTenants(tools, rowsMax), tools, stopping);
}

async function untilNone(
  batch: (rowsMax: number) => Promise<number>,
  { timer }: JobTools,
  stopping: AbortSignal,
): Promise<number> {
  const pace = createPace(stopping, timer);
  let count = 0;
  while (!stopping.aborted) {
    const done = await batch(pace.batch);
    if (done === 0) break;
    count += done;
    await pace.rest(done);
  }
  return count;
}
