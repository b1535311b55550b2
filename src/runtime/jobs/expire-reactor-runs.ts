/** Removing the results and logs of calls of reactors, a day after the calls. */
import { systemEntry } from '../../rules/log-entries.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { type JobTools, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/** One entry for the whole batch. An altered row is removed too, because no caller could read it. */
export function expireReactorRuns(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    due: { table: 'reactor_runs', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('reactor_runs', 'expires_at', due)),
    decide: async (rows, { tenant, now: at }) => {
      const reactor_runs = rows.map(({ tenant_id, run_id, version }) => ({
        tenant_id,
        run_id,
        version,
      }));
      const fact = { entity: 'reactor_run', id: '*', operation: 'expire' } as const;
      return {
        change: { remove: { reactor_runs } },
        entries: [systemEntry({ tenant: tenant.id, at, ...fact })],
        count: rows.length,
      };
    },
  });
}
