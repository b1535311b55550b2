/** Removing expired sessions and their keys. */
import { systemEntry } from '../../rules/log-entries.ts';
import { keysWithHashes } from '../../store/queries/applications.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { type JobTools, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/** A session that was altered stays: it might claim another session's key as its own. */
export function expireSessions(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    due: { table: 'sessions', column: 'expires_at' },
    rowsMax: batchMax,
    find: (due) => store.select(rowsDue('sessions', 'expires_at', due)),
    decide: async (found, { tenant, now: at, quarantine }) => {
      const { rows: done } = quarantine.proven(tenant, 'sessions', found);
      const hashes = done.map(({ key_hash }) => key_hash);
      const api_keys =
        hashes.length === 0 ? [] : await store.select(keysWithHashes(tenant.id, hashes));
      const sessions = done.map(({ tenant_id, session_id, version }) => ({
        tenant_id,
        session_id,
        version,
      }));
      return {
        change: { remove: { sessions, api_keys } },
        entries: done.map(({ session_id: id }) =>
          systemEntry({ tenant: tenant.id, at, entity: 'session', id, operation: 'expire' }),
        ),
        count: done.length,
      };
    },
  });
}
