/** Removing the rows of deleted tenants. */
import { purgeDeletedTenants } from '../../access/tenants/delete.ts';
import type { JobTools } from './batches.ts';
import { createPace } from './pace.ts';

export async function removeTenants(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const pace = createPace(stopping, tools.timer);
  let count = 0;
  while (!stopping.aborted) {
    const done = await purgeDeletedTenants(tools, pace.batch);
    if (done === 0) break;
    count += done;
    await pace.rest(done);
  }
  return count;
}
