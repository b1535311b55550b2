/** Dispatching: an event gets its place among those of its entity, and a delivery to each webhook that wants it. */
import { type Clock, type Instant, instantAfter } from '../../lib/clock.ts';
import type { WebhookId } from '../../lib/ids.ts';
import type { Random } from '../../lib/random.ts';
import type { Tenant } from '../../rules/tenant.ts';
import { undispatchedEvents } from '../../store/queries/events.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { deliveryRow } from '../events/delivery-row.ts';
import { sequenceProof } from '../events/event-row.ts';
import { eventTypes, isEventType } from '../events/types.ts';
import type { Webhook } from './webhooks-of.ts';
import { newTimeUuid } from '../../lib/ids.ts';

/** Events that are dispatched in one transaction. */
export const dispatchMax = 500;

export interface DispatchTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Dispatched {
  readonly events: number;
  /** That have something to deliver now. */
  readonly webhooks: ReadonlySet<WebhookId>;
}

/**
 * The events of a tenant that waited longest. In the order of their commits: a sequence is given once the ones
 * before it are. Where another server did the same meanwhile, nothing is done.
 */
export async function dispatch(
  { store, clock, random }: DispatchTools,
  tenant: Tenant,
  webhooks: readonly Webhook[],
): Promise<Dispatched> {
  const events = await store.select(undispatchedEvents({ tenant: tenant.id, limit: dispatchMax }));
  if (events.length === 0) return nothing;
  const now = clock.now();
  const sequences = await sequencesOf(store, events);
  const deliveries: Row<'deliveries'>[] = [];
  const numbered = events.map((event) => {
    const sequence = sequences.next(event, now);
    for (const webhook of webhooks) {
      if (!webhook.wants(event.type)) continue;
      const id = newTimeUuid(random, now);
      deliveries.push(deliveryRow(event, { id, webhook: webhook.id, sequence, now }));
    }
    const { tenant_id, event_id } = event;
    const proof = sequenceProof(tenant, { event_id, sequence });
    return { tenant_id, event_id, sequence, proof, was_sequence: null };
  });
  const outcome = await store.record({
    insert: { deliveries, event_sequences: sequences.inserted() },
    amend: { events: numbered, event_sequences: sequences.amended() },
  });
  if (outcome.conflict !== undefined) return nothing;
  return { events: events.length, webhooks: new Set(deliveries.map((row) => row.webhook_id)) };
}
