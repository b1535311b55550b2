/** Removing events that nobody can replay any more, their deliveries, and the sequences of what is gone. */
import { day, instantAfter } from '../lib/clock.ts';
import { type DeliveryId, type EventId, firstTimedUuid } from '../lib/ids.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { Bookkeeping } from '../store/change.ts';
import {
  deliveriesBefore,
  deliveriesOf,
  eventsBefore,
  sequencesEndedBefore,
  webhooksWithDeliveries,
} from '../store/event-queries/deliveries.ts';
import { allWebhooks } from '../store/event-queries/webhooks.ts';
import type { JobTools } from './batches.ts';
import { createPace, type Pace } from './pace.ts';

/** From an event on. For as long it can be sent again. */
export const eventsKeptMs = 30 * day;

/** Without log entries: what happened stays in the log, whether it was sent or not. */
export async function removeEvents(tools: JobTools, stopping: AbortSignal): Promise<number> {
  const pace = createPace(stopping, tools.timer);
  let count = 0;
  for (const { tenant_id } of await tools.tenants.all()) {
    const tenant = await tools.tenants.find(tenant_id);
    if (tenant === undefined) continue;
    for (const find of [...(await ofGone(tools, tenant)), ...ofOld(tools, tenant)]) {
      count += await removeFound(tools, { find, pace, stopping });
    }
  }
  return count;
}

interface Found {
  readonly rows: number;
  readonly remove: NonNullable<Bookkeeping['remove']>;
}

type Find = (limit: number) => Promise<Found>;

function ofOld({ store, clock }: JobTools, { id: tenant }: Tenant): readonly Find[] {
  const before = instantAfter(clock.now(), -eventsKeptMs);
  return [
    async (limit) => {
      const until = firstTimedUuid<DeliveryId>(before);
      const deliveries = await store.scan(deliveriesBefore({ tenant, until, limit }));
      return { rows: deliveries.length, remove: { deliveries } };
    },
    async (limit) => {
      const until = firstTimedUuid<EventId>(before);
      const events = await store.scan(eventsBefore({ tenant, until, limit }));
      return { rows: events.length, remove: { events } };
    },
    async (limit) => {
      const ended = sequencesEndedBefore({ tenant, until: before, limit });
      const event_sequences = await store.scan(ended);
      return { rows: event_sequences.length, remove: { event_sequences } };
    },
  ];
}

/** A webhook that was deleted takes its deliveries with it. */
async function ofGone({ store }: JobTools, { id: tenant }: Tenant): Promise<readonly Find[]> {
  const used = await store.scan(webhooksWithDeliveries(tenant));
  const present = new Set((await store.select(allWebhooks(tenant))).map((row) => row.webhook_id));
  const gone = used.filter(({ webhook_id }) => !present.has(webhook_id));
  return gone.map(({ webhook_id: webhook }) => async (limit) => {
    const deliveries = await store.select(deliveriesOf({ tenant, webhook }, limit));
    return { rows: deliveries.length, remove: { deliveries } };
  });
}

interface Removing {
  readonly find: Find;
  readonly pace: Pace;
  readonly stopping: AbortSignal;
}

async function removeFound(
  { store }: JobTools,
  { find, pace, stopping }: Removing,
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
