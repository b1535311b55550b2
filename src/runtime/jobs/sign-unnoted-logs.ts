/** Looking once a day at the log of every tenant, for growth that no note says: in slices of the tenants' ids. */

import { writeCheckpoint } from '../../audit/checkpoints.ts';
import { day, hour, minute } from '../../base/clock.ts';
import { integrityError, type VaultError } from '../../base/errors.ts';
import { parseUuid, type TenantId } from '../../base/ids.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { workOfTenant } from '../../store/queries/due.ts';
import { nextTenantWithLogs } from '../../store/queries/tenants.ts';
import type { JobTools } from './batches.ts';
import { createPace } from './pace.ts';
import type { Job } from './runner.ts';

/** A slice of the day, in which the same slice of all ids is looked at: these are random. */
const sliceMs = 10 * minute;

const slicesPerDay = day / sliceMs;

/** After a start the slices of so long before are looked at as well: a daily restart leaves none out. */
const beforeStartMs = hour;

const tenantsPerPage = 100;

export function signUnnotedLogs(tools: JobTools): Job {
  const { store, clock } = tools;
  let next: number | undefined;
  return {
    name: 'look for forgotten logs',
    everyMs: sliceMs,
    run: async (stopping) => {
      const end = Math.floor(clock.now() / sliceMs);
      // A start reads nothing: the slice that it falls into is looked at when it is over.
      if (next === undefined) {
        next = end - beforeStartMs / sliceMs;
        return 0;
      }
      const failures = createFailures(store);
      let written = 0;
      for (let slice = Math.max(next, end - slicesPerDay); slice < end; slice++) {
        for await (const tenant of tenantsIn(tools, slice, stopping)) {
          let isNoted = true;
          const onGrown = async () => {
            isNoted = (await store.select(workOfTenant(tenant, 'checkpoint'))).length > 0;
          };
          const isSigned = await failures.attempt(() => writeCheckpoint(tools, tenant, onGrown));
          if (!isSigned) continue;
          written++;
          if (!isNoted) failures.add(unnoted(tenant));
        }
        if (stopping.aborted) return written;
        next = slice + 1;
      }
      failures.report();
      return written;
    },
  };
}

/** At the pace of jobs, page by page. */
async function* tenantsIn(
  { store, timer }: JobTools,
  slice: number,
  stopping: AbortSignal,
): AsyncGenerator<TenantId> {
  const pace = createPace(stopping, timer);
  const part = slice % slicesPerDay;
  const end = part + 1 === slicesPerDay ? undefined : beginOf(part + 1);
  let after = beginOf(part);
  while (!stopping.aborted) {
    const page = await store.select(nextTenantWithLogs('tenants', after, tenantsPerPage));
    for (const { tenant_id } of page) {
      if (stopping.aborted || (end !== undefined && tenant_id >= end)) return;
      yield tenant_id;
      await pace.rest(1);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < tenantsPerPage) return;
    after = last.tenant_id;
  }
}

/** No id of version 4 is equal to it. */
function beginOf(part: number): TenantId | undefined {
  const number = Math.floor((part / slicesPerDay) * 2 ** 32);
  return parseUuid(`${number.toString(16).padStart(8, '0')}-0000-0000-0000-000000000000`);
}

function unnoted(tenant: TenantId): VaultError {
  return integrityError(
    `the log of tenant ${tenant} had grown, and no note said so: it was removed outside the vault, or lost ` +
      'in a failover. What remains of the log is signed now',
    { altered: { entity: 'log', id: tenant } },
  );
}
