/** Removing tokens whose time is over. No reader has seen them since; this takes them off the disk. */
import { systemEntry } from '../vault/logs/audit.ts';
import { type JobTools, keysMax, workOff } from './batches.ts';

/** Each token that goes has its own `expire` entry in the same commit. */
export function expireTokens(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    rowsMax: keysMax,
    find: ({ tenant, until, rowsMax, skip }) =>
      store.scan((db) =>
        db
          .selectFrom('tokens')
          .select(['tenant_id', 'token_id', 'version'])
          .where('tenant_id', '=', tenant.id)
          .where('expires_at', '<=', until)
          .orderBy('expires_at')
          .limit(rowsMax)
          .offset(skip),
      ),
    decide: async (tokens, { id: tenant }, at) => ({
      change: { remove: { tokens } },
      entries: tokens.map(({ token_id: id }) =>
        systemEntry({ tenant, at, entity: 'token', id, operation: 'expire' }),
      ),
      count: tokens.length,
    }),
  });
}
