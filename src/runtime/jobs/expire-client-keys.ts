/** Removing expired encryption keys of clients. */
import { systemEntry } from '../../rules/log-entries.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { type JobTools, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/** A key that was altered stays: its expiry may be what was altered. */
export function expireClientKeys(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    due: { table: 'client_keys', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('client_keys', 'expires_at', due)),
    decide: async (found, { tenant, now: at, quarantine }) => {
      const { rows: done } = quarantine.proven(tenant, 'client_keys', found);
      const client_keys = done.map(({ tenant_id, client_key_id, version }) => ({
        tenant_id,
        client_key_id,
        version,
      }));
      return {
        change: { remove: { client_keys } },
        entries: done.map(({ client_key_id: id }) =>
          systemEntry({ tenant: tenant.id, at, entity: 'key', id, operation: 'expire' }),
        ),
        count: done.length,
      };
    },
  });
}
