/**
 * Dispatches events: gives each event its sequence within its entity, and creates a delivery for each subscribed
 * webhook.
 */
import type { Clock, Instant } from '../../base/clock.ts';
import { integrityError } from '../../base/errors.ts';
import type { DeliveryId, WebhookId } from '../../base/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Amendment } from '../../store/amendments.ts';
import {
  type UndispatchedEvent as Event,
  undispatchedEvents,
} from '../../store/event-queries/events.ts';
import type { Store } from '../../store/store.ts';
import type { Key, Row } from '../../store/tables.ts';
import { deliveryRow } from '../events/delivery-row.ts';
import { sequenceProof } from '../events/event-row.ts';
import { eventTypes, parseEventType } from '../events/types.ts';
import type { Webhooks } from './webhooks-of.ts';

/** Events dispatched in one transaction. */
const dispatchMax = 500;

/** Far more events than an entity can have. */
const sequenceMax = 2 ** 52;

/** Deliveries created in one transaction, unless a single event has more: other commits wait for it. */
export const deliveriesMax = 2_000;

export interface DispatchTools {
  readonly store: Store;
  readonly clock: Clock;
  readonly webhooks: Webhooks;
  readonly newDeliveryId: (at: Instant) => DeliveryId;
}

export interface Dispatched {
  readonly events: number;
  /** Whether more events may be waiting. */
  readonly hasMore: boolean;
  /** The webhooks that now have due deliveries. */
  readonly webhooks: ReadonlySet<WebhookId>;
}

/**
 * Dispatches the oldest events of a tenant: all of a batch or, if another server was faster, none. An event may
 * depend on everything known when it was created, so sequences follow the order of commits.
 * @param note is stored with the deliveries, if there are any.
 */
export async function dispatch(
  { store, clock, webhooks: { now: webhooksNow }, newDeliveryId }: DispatchTools,
  tenant: Tenant,
  note?: Row<'due_work'>,
): Promise<Dispatched> {
  const found = await store.select(undispatchedEvents({ tenant: tenant.id, limit: dispatchMax }));
  if (found.length === 0) return nothing;
  // Read after the events. Otherwise a webhook that another server created before the events would miss them.
  const webhooks = await webhooksNow(tenant);
  const eventsMax = Math.max(1, Math.floor(deliveriesMax / Math.max(1, webhooks.length)));
  const events = found.slice(0, eventsMax);
  const now = clock.now();
  const sequences = await openSequences(store, tenant, { events, now });
  const deliveries: Row<'deliveries'>[] = [];
  const numbered = events.map((event) => {
    const sequence = sequences.next(event);
    for (const webhook of webhooks) {
      if (!webhook.wants(event.type)) continue;
      deliveries.push(
        deliveryRow(event, { id: newDeliveryId(now), webhook: webhook.id, sequence, now }),
      );
    }
    const { tenant_id, event_id } = event;
    const proof = sequenceProof(tenant, { event_id, sequence });
    return { tenant_id, event_id, sequence, proof, was_sequence: null };
  });
  const { conflict } = await store.record({
    insert: {
      deliveries,
      event_sequences: sequences.inserted(),
      ...(note && deliveries.length > 0 && { due_work: [note] }),
    },
    amend: { events: numbered, event_sequences: sequences.amended() },
    remove: { event_sequences: sequences.removed() },
  });
  // A caller has stored the same note in the same millisecond.
  if (conflict?.startsWith('due_work')) return { ...nothing, hasMore: true };
  if (conflict !== undefined) return nothing;
  return {
    events: events.length,
    hasMore: events.length < found.length || found.length === dispatchMax,
    webhooks: new Set(deliveries.map((row) => row.webhook_id)),
  };
}

const nothing: Dispatched = { events: 0, hasMore: false, webhooks: new Set() };

type Sequence = Row<'event_sequences'>;

interface Sequences {
  next(event: Event): number;
  inserted(): readonly Sequence[];
  amended(): readonly Amendment<'event_sequences'>[];
  /** Unreadable sequences. Their entities restart at 1. */
  removed(): readonly Key<'event_sequences'>[];
}

/** The stored sequences for the entities of the events, and their new values. */
async function openSequences(
  store: Store,
  { quarantine }: Pick<Tenant, 'quarantine'>,
  { events, now }: { readonly events: readonly Event[]; readonly now: Instant },
): Promise<Sequences> {
  const keys = new Map(events.map((event) => [textOf(event), keyOf(event)]));
  const stored = new Map<string, Sequence | undefined>();
  const removed: Key<'event_sequences'>[] = [];
  await Promise.all(
    [...keys].map(async ([text, key]) => {
      const read = await quarantine.fetch(async () => ({ row: await readSequence(store, key) }));
      if (read) stored.set(text, read.row);
      else removed.push(key);
    }),
  );
  const latest = new Map<string, Sequence>();
  return {
    next: (event) => {
      const text = textOf(event);
      const last = ((latest.get(text) ?? stored.get(text))?.last ?? 0) + 1;
      const ends = typeOf(event)?.ends === true;
      latest.set(text, { ...keyOf(event), last, ended_at: ends ? now : null });
      return last;
    },
    removed: () => removed,
    inserted: () => [...latest].flatMap(([text, row]) => (stored.get(text) ? [] : [row])),
    amended: () =>
      [...latest].flatMap(([text, row]) => {
        const before = stored.get(text);
        return before ? [{ ...row, was_last: before.last }] : [];
      }),
  };
}

/** @throws VaultError `integrity`, also for a sequence that cannot be incremented. */
async function readSequence(
  store: Store,
  key: Key<'event_sequences'>,
): Promise<Sequence | undefined> {
  const row = await store.get('event_sequences', key);
  if (row && row.last > sequenceMax) throw integrityError('a sequence of events is too high');
  return row;
}

function keyOf(event: Event): Pick<Sequence, 'tenant_id' | 'entity' | 'entity_id'> {
  const { tenant_id, entity_id, type } = event;
  return { tenant_id, entity: typeOf(event)?.entity ?? type, entity_id };
}

function textOf(event: Event): string {
  return `${typeOf(event)?.entity ?? event.type} ${event.entity_id}`;
}

function typeOf({ type }: Event) {
  const known = parseEventType(type);
  return known && eventTypes[known];
}
