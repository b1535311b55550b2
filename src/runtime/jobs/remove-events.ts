/** Removes events that can no longer be replayed, their deliveries, and the sequences of deleted entities. */
import { day, hour, type Instant, instantAfter } from '../../base/clock.ts';
import { type DeliveryId, type EventId, firstTimedUuid, type TenantId } from '../../base/ids.ts';
import type { Bookkeeping } from '../../store/change.ts';
import {
  deliveriesBefore,
  deliveriesOf,
  eventsBefore,
  sequencesEndedBefore,
  webhooksWithDeliveries,
} from '../../store/event-queries/deliveries.ts';
import { allWebhooks } from '../../store/event-queries/webhooks.ts';
import { createFailures } from '../../store/per-tenant/failures.ts';
import { byTenant } from '../../store/per-tenant/record.ts';
import type { DueColumn } from '../../store/queries/due.ts';
import { duePages, dueWork, orphans } from '../../store/queries/due-tenants.ts';
import type { JobTools } from './batches.ts';
import { createPace, type Pace } from './pace.ts';

/** From an event on. For as long it can be sent again. */
export const eventsKeptMs = 30 * day;

/** Rows looked at to find the tenants that have old ones. */
const oldRowsMax = 50_000;

/** For as long an event may still be dispatched to a webhook that is gone. */
const lateMs = hour;

/** Without log entries: what happened stays in the log, whether it was sent or not. */
export async function removeEvents(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const { store, clock } = tools;
  const pace = createPace(stopping, tools.timer);
  const removeAll = (find: FindOldRows) => removeFound(tools, { find, pace, stopping });
  let count = 0;
  const started = clock.now();
  const failures = createFailures(store);
  await failures.attempt(async () => {
    for await (const gone of dueWork(store, { work: 'deliveries', until: started })) {
      const failed = new Set<TenantId>();
      for (const tenant of new Set(gone.map(({ tenant_id }) => tenant_id))) {
        failed.add(tenant);
        await failures.attempt(async () => {
          for (const find of await ofGone(tools, tenant)) count += await removeAll(find);
          failed.delete(tenant);
        });
      }
      if (stopping.aborted) return;
      const over = gone.filter(({ due_at }) => due_at <= started - lateMs);
      const due_work = over.filter(({ tenant_id }) => !failed.has(tenant_id));
      await byTenant(due_work, (rows) => store.record({ remove: { due_work: rows } }));
    }
  });
  if (stopping.aborted) return count;
  const before = instantAfter(started, -eventsKeptMs);
  const until = instantAfter(before, -1);
  for (const { due, findOf } of ofOld(tools, before)) {
    for await (const old of duePages(store, { ...due, until, rowsMax: oldRowsMax })) {
      if (old.hasOrphans) failures.add(orphans(due));
      for (const { id } of old.tenants) {
        await failures.attempt(async () => {
          count += await removeAll(findOf(id));
        });
      }
    }
  }
  failures.report();
  return count;
}

interface RemovableRows {
  readonly rows: number;
  readonly remove: NonNullable<Bookkeeping['remove']>;
}

type FindOldRows = (limit: number) => Promise<RemovableRows>;

interface OldRows {
  readonly due: DueColumn;
  readonly findOf: (tenant: TenantId) => FindOldRows;
}

function ofOld({ store }: JobTools, before: Instant): readonly OldRows[] {
  return [
    {
      due: { table: 'deliveries', column: 'created_at' },
      findOf: (tenant) => async (limit) => {
        const until = firstTimedUuid<DeliveryId>(before);
        const deliveries = await store.scan(deliveriesBefore({ tenant, until, limit }), 'vault');
        return { rows: deliveries.length, remove: { deliveries } };
      },
    },
    {
      due: { table: 'events', column: 'created_at' },
      findOf: (tenant) => async (limit) => {
        const until = firstTimedUuid<EventId>(before);
        const events = await store.scan(eventsBefore({ tenant, until, limit }), 'vault');
        return { rows: events.length, remove: { events } };
      },
    },
    {
      due: { table: 'event_sequences', column: 'ended_at' },
      findOf: (tenant) => async (limit) => {
        const ended = sequencesEndedBefore({ tenant, until: before, limit });
        const event_sequences = await store.scan(ended, 'vault');
        return { rows: event_sequences.length, remove: { event_sequences } };
      },
    },
  ];
}

/** A webhook that was deleted takes its deliveries with it. */
async function ofGone({ store }: JobTools, tenant: TenantId): Promise<readonly FindOldRows[]> {
  const used = await store.scan(webhooksWithDeliveries(tenant), 'vault');
  const present = new Set((await store.select(allWebhooks(tenant))).map((row) => row.webhook_id));
  const gone = used.filter(({ webhook_id }) => !present.has(webhook_id));
  return gone.map(({ webhook_id: webhook }) => async (limit) => {
    const deliveries = await store.select(deliveriesOf({ tenant, webhook }, limit));
    return { rows: deliveries.length, remove: { deliveries } };
  });
}

interface EventRemoval {
  readonly find: FindOldRows;
  readonly pace: Pace;
  readonly stopping: AbortSignal;
}

async function removeFound(
  { store }: JobTools,
  { find, pace, stopping }: EventRemoval,
): Promise<number> {
  let count = 0;
  while (!stopping.aborted) {
    const { rows, remove } = await find(pace.batch);
    if (rows === 0) break;
    // A conflict says that another server removed some of them; the next run looks again.
    const { conflict } = await store.record({ remove });
    if (conflict !== undefined) break;
    count += rows;
    await pace.rest(rows);
  }
  return count;
}
