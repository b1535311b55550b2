/** The job that keeps the search index of the logs. */

import { indexLog } from '../../audit/search-index/build.ts';
import { minute } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { dueWork } from '../../store/queries/due-tenants.ts';
import type { JobTools } from './batches.ts';
import { createPace } from './pace.ts';
import type { Job } from './runner.ts';

/**
 * It looks at the logs that have grown lately, as the notes for checkpoints say. One that was long before there was an
 * index grows with the first request that reads it.
 */
export function indexLogs(tools: JobTools): Job {
  const { store, clock, tenants } = tools;
  return {
    name: 'index the logs',
    everyMs: 10 * minute,
    run: async (stopping) => {
      const failures = createFailures(store);
      const pace = createPace(stopping, tools.timer);
      const rest = (rows: number) => pace.rest(rows);
      const seen = new Set<TenantId>();
      let indexed = 0;
      for await (const tenantId of grown(tools)) {
        if (stopping.aborted) return indexed;
        if (seen.has(tenantId)) continue;
        seen.add(tenantId);
        await failures.attempt(async () => {
          const tenant = await tenants.find(tenantId);
          if (!tenant) return;
          indexed += await indexLog({ store, clock, rest }, tenant, stopping);
        });
      }
      failures.report();
      return indexed;
    },
  };
}

async function* grown({ store, clock }: JobTools): AsyncGenerator<TenantId> {
  for await (const notes of dueWork(store, { work: 'checkpoint', until: clock.now() })) {
    for (const { tenant_id } of notes) yield tenant_id;
  }
}
