/** The job that keeps the search index of the logs. */

import { indexLog } from '../../audit/search-index/build.ts';
import { minute } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { dueWork } from '../../store/queries/due-tenants.ts';
import { nextTenantWithLogs } from '../../store/queries/tenants.ts';
import type { JobTools } from './batches.ts';
import { createPace } from './pace.ts';
import type { Job } from './runner.ts';

const tenantsPerPage = 100;

/**
 * The first run looks at the log of every tenant, and the others at those that have grown lately, as the notes for
 * checkpoints say.
 * @param chapterEntries for logs that are searched by chapters of another length.
 */
export function indexLogs(tools: JobTools, chapterEntries?: number): Job {
  const { store, clock, tenants } = tools;
  let hasSeenAll = false;
  return {
    name: 'index the logs',
    everyMs: 10 * minute,
    run: async (stopping) => {
      const failures = createFailures(store);
      const pace = createPace(stopping, tools.timer);
      const rest = (rows: number) => pace.rest(rows);
      const seen = new Set<TenantId>();
      let indexed = 0;
      for await (const tenantId of hasSeenAll ? grown(tools) : all(tools)) {
        if (stopping.aborted) return indexed;
        if (seen.has(tenantId)) continue;
        seen.add(tenantId);
        await failures.attempt(async () => {
          const tenant = await tenants.find(tenantId);
          if (!tenant) return;
          indexed += await indexLog({ store, clock, chapterEntries, rest }, tenant, stopping);
        });
      }
      hasSeenAll = true;
      failures.report();
      return indexed;
    },
  };
}

async function* all({ store }: JobTools): AsyncGenerator<TenantId> {
  let after: TenantId | undefined;
  for (;;) {
    const page = await store.select(nextTenantWithLogs('tenants', after, tenantsPerPage));
    for (const { tenant_id } of page) yield tenant_id;
    after = page.at(-1)?.tenant_id;
    if (after === undefined || page.length < tenantsPerPage) return;
  }
}

async function* grown({ store, clock }: JobTools): AsyncGenerator<TenantId> {
  for await (const notes of dueWork(store, { work: 'checkpoint', until: clock.now() })) {
    for (const { tenant_id } of notes) yield tenant_id;
  }
}
