/** Removing expired tokens. No reader sees them since they expired; this removes them from the disk. */
import { systemEntry } from '../../rules/log-entries.ts';
import { sizedDue } from '../../store/queries/tenant-rows.ts';
import { type JobTools, keysMax, workOff } from './batches.ts';
import { createRowOpening } from './opened-rows.ts';

/** Each token that goes has its own `expire` entry in the same commit. One that was altered stays. */
export function expireTokens(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  const openRows = createRowOpening(store);
  return workOff(tools, stopping, {
    due: { table: 'tokens', column: 'expires_at' },
    rowsMax: keysMax,
    find: (due) => store.scan(sizedDue('tokens', 'expires_at', due)),
    decide: async (found, { tenant, now: at, quarantine }) => {
      const { done: tokens, absent } = await openRows(
        { tenant, quarantine },
        { table: 'tokens', found },
      );
      return {
        change: { remove: { tokens } },
        entries: tokens.map(({ token_id: id }) =>
          systemEntry({ tenant: tenant.id, at, entity: 'token', id, operation: 'expire' }),
        ),
        count: tokens.length,
        absent,
      };
    },
  });
}
