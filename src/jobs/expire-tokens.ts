/** Removing tokens whose time is over. No reader has seen them since; this takes them off the disk. */
import { systemEntry } from '../vault/logs/audit.ts';
import { removalColumns, removalOf } from '../vault/tokens/queries.ts';
import { batchMax, type JobTools, workOff } from './batches.ts';

/** Each token that goes has its own `expire` entry in the same commit. */
export function expireTokens(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    find: ({ tenant, until }) =>
      store.select((db) =>
        db
          .selectFrom('tokens')
          .select(removalColumns)
          .where('tenant_id', '=', tenant.id)
          .where('expires_at', '<=', until)
          .orderBy('expires_at')
          .limit(batchMax),
      ),
    decide: async (rows, { id: tenant }, at) => ({
      change: { remove: await removalOf(store, rows) },
      entries: rows.map(({ token_id: id }) =>
        systemEntry({ tenant, at, entity: 'token', id, operation: 'expire' }),
      ),
      count: rows.length,
    }),
  });
}
