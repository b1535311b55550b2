/** Removing expired tokens. No reader sees them since they expired; this removes them from the disk. */
import { systemEntry } from '../rules/log-entries.ts';
import { removableDue } from '../store/queries/tenant-rows.ts';
import { type JobTools, keysMax, workOff } from './batches.ts';

/** Each token that goes has its own `expire` entry in the same commit. */
export function expireTokens(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    rowsMax: keysMax,
    find: (due) => store.scan(removableDue('tokens', 'expires_at', due)),
    decide: async (tokens, { id: tenant }, at) => ({
      change: { remove: { tokens } },
      entries: tokens.map(({ token_id: id }) =>
        systemEntry({ tenant, at, entity: 'token', id, operation: 'expire' }),
      ),
      count: tokens.length,
    }),
  });
}
