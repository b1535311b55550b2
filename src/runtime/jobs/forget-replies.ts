/** Removing the responses stored under idempotency keys: whole after a day, in part when data expires. */
import { rowWithoutExpired } from '../../http/idempotency/stored-reply.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { rowsDue } from '../../store/queries/tenant-rows.ts';
import { type JobTools, workOff } from './batches.ts';
import { batchMax } from './pace.ts';

/** One entry for all of a batch, since keys are the callers' own and name nothing of the vault. */
export function forgetReplies(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, random } = tools;
  return workOff(tools, stopping, {
    due: { table: 'replies', column: 'next_expiry_at' },
    rowsMax: batchMax,
    find: (due) => store.scan(rowsDue('replies', 'next_expiry_at', due)),
    decide: async (rows, { tenant, now, quarantine }) => {
      const opened = rows.flatMap(
        (row) =>
          quarantine.read(() => ({
            row,
            current: rowWithoutExpired({ tenant, key: row, now, random }, row),
          })) ?? [],
      );
      const gone = opened.filter(({ current }) => current === undefined);
      const fact = { entity: 'idempotency_key', id: '*', operation: 'expire' } as const;
      return {
        change: {
          remove: { replies: gone.map(({ row }) => row) },
          replace: { replies: opened.flatMap(({ current }) => current ?? []) },
        },
        entries: opened.length === 0 ? [] : [systemEntry({ tenant: tenant.id, at: now, ...fact })],
        count: opened.length,
      };
    },
  });
}
