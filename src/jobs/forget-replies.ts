/** Forgetting the answers kept under idempotency keys: whole after a day, in part when data fades. */
import { type Instant, instantAfter } from '../lib/clock.ts';
import { systemEntry } from '../vault/audit.ts';
import { fadedRow, replyRetentionMs } from '../vault/stored-reply.ts';
import type { Tenant } from '../vault/tenants.ts';
import { batchMax, type JobTools, undamaged, workOff } from './batches.ts';

export function forgetReplies(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store } = tools;
  return workOff(tools, stopping, {
    find: ({ tenant, until }) =>
      store.select((db) =>
        db
          .selectFrom('replies')
          .select(['tenant_id', 'application_id', 'route', 'idempotency_key', 'version'])
          .where('tenant_id', '=', tenant.id)
          .where('created_at', '<=', instantAfter(until, -replyRetentionMs))
          .orderBy('created_at')
          .limit(batchMax),
      ),
    decide: async (replies, tenant, now) => ({
      change: { remove: { replies } },
      entries: entriesOf(replies, tenant, now),
      count: replies.length,
    }),
  });
}

/** Takes out of kept answers what is gone from the tokens they tell of. */
export function fadeReplies(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, random } = tools;
  return workOff(tools, stopping, {
    find: ({ tenant, until }) =>
      store.select((db) =>
        db
          .selectFrom('replies')
          .selectAll()
          .where('tenant_id', '=', tenant.id)
          .where('fades_at', '<=', until)
          .orderBy('fades_at')
          .limit(batchMax),
      ),
    decide: async (rows, tenant, now) => {
      const opened = undamaged(rows, (row) => ({
        row,
        faded: fadedRow({ tenant, key: row, now, random }, row),
      }));
      const gone = opened.filter(({ faded }) => faded === undefined);
      return {
        change: {
          remove: { replies: gone.map(({ row }) => row) },
          replace: { replies: opened.flatMap(({ faded }) => faded ?? []) },
        },
        entries: entriesOf(opened, tenant, now),
        count: opened.length,
      };
    },
  });
}

/** One entry for all, since keys are the callers' own and name nothing of the vault. */
function entriesOf(replies: readonly unknown[], { id: tenant }: Tenant, at: Instant) {
  if (replies.length === 0) return [];
  return [systemEntry({ tenant, at, entity: 'idempotency_key', id: '*', operation: 'expire' })];
}
