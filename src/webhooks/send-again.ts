/** Sends events that a caller requests: a test event, a delivery again, and past events. */

import { type Instant, instantAfter } from '../base/clock.ts';
import { parseExpiry } from '../base/dates.ts';
import { invalid, VaultError } from '../base/errors.ts';
import {
  createTimedUuids,
  type DeliveryId,
  type EventId,
  firstTimedUuid,
  parseUuid,
} from '../base/ids.ts';
import { createValidationErrors } from '../base/validation-errors.ts';
import { sealCursor } from '../keys/cursor.ts';
import { newNote } from '../queue/notes.ts';
import { type Caller, payerOf } from '../rules/caller.ts';
import { detailed, entryOf } from '../rules/log-entries.ts';
import { positionOfCursor } from '../rules/offset-page.ts';
import { openerFor } from '../rules/openings.ts';
import type { Decide } from '../rules/operation.ts';
import { rowOf } from '../rules/stored-resource.ts';
import { dispatchedEvents } from '../store/event-queries/events.ts';
import { waitingUpTo } from '../store/event-queries/webhooks.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { unknownType } from './definition.ts';
import { deliveryOf, viewDelivery } from './deliveries.ts';
import { deliveryRow, waitingOf } from './events/delivery-row.ts';
import { eventRow, sequenceProof } from './events/event-row.ts';
import { type EventType, parseEventType, testType } from './events/types.ts';
import { openWebhook, type WebhookWriting } from './resource.ts';

/** Sends a test event to one webhook. The decision throws `not_found`, `unprocessable`, or `integrity`. */
export function testWebhook(
  { store, clock, random }: WebhookWriting,
  caller: Caller,
  id: string,
): Decide {
  const { tenant } = caller;
  const newId = createTimedUuids(random);
  return async () => {
    const now = clock.now();
    const row = await rowOf(store, 'webhooks', { tenant, id });
    openWebhook(openerFor(caller, 'webhook:update'), row);
    requireEnabled(row);
    const { webhook_id } = row;
    const { loop } = caller.origin;
    const event_id = newId<EventId>(now);
    // A test event has no sequence within an entity.
    const sequence = 0;
    const event = eventRow(
      tenant,
      {
        event_id,
        type: testType,
        entity_id: webhook_id,
        created_at: now,
        body: {
          data: { webhook: { id: webhook_id, name: row.name } },
          actor: { id: caller.application, type: 'application' },
          trace_id: caller.origin.traceId,
          ...(loop !== undefined && { loop }),
        },
      },
      random,
    );
    const numbered = { ...event, sequence, proof: sequenceProof(tenant, { event_id, sequence }) };
    const delivery = deliveryRow(event, {
      id: newId<DeliveryId>(now),
      webhook: webhook_id,
      sequence,
      now,
    });
    return {
      change: {
        insert: {
          events: [numbered],
          deliveries: [delivery],
          due_work: [await newNote(store, waitingOf(tenant.id), now)],
        },
        entries: [entryOf(caller, now, { entity: 'webhook', id: webhook_id, operation: 'test' })],
      },
      reply: { status: 202, body: viewDelivery(delivery) },
    };
  };
}

export interface DeliveryPath {
  readonly id: string;
  readonly deliveryId: string;
}

/** Makes a delivery due again. The decision throws `not_found`, `unprocessable`, or `integrity`. */
export function redeliver(
  { store, clock }: WebhookWriting,
  caller: Caller,
  { id, deliveryId }: DeliveryPath,
): Decide {
  return async () => {
    const now = clock.now();
    const row = await rowOf(store, 'webhooks', { tenant: caller.tenant, id });
    openWebhook(openerFor(caller, 'webhook:update'), row);
    requireEnabled(row);
    const before = await deliveryOf(store, row, parseUuid<DeliveryId>(deliveryId));
    const again = { ...before, state: 'waiting', due_at: now } as const;
    const fact = { entity: 'webhook', id: row.webhook_id, operation: 'redeliver' } as const;
    return {
      change: {
        remove: { deliveries: [before] },
        insert: {
          deliveries: [again],
          due_work: [await newNote(store, waitingOf(row.tenant_id), now)],
        },
        entries: [detailed(entryOf(caller, now, fact), before.delivery_id)],
      },
      reply: { status: 202, body: viewDelivery(again) },
    };
  };
}

export interface Replaying {
  readonly since: string;
  readonly until?: string | null;
  readonly types?: readonly string[] | null;
  /** Cursor of an earlier response to the same request. */
  readonly start?: string | null;
}

/** The maximum number of events that one request sends again. */
export const replayedMax = 1_000;

/**
 * If more deliveries than this are waiting, requests would fill the database faster than the receiver can empty it.
 */
export const waitingMax = 10_000;

/**
 * Sends stored events again, oldest first, of the types to which the webhook subscribes. The decision throws
 * `not_found`, `unprocessable`, `integrity`, or `validation_failed` for a type to which the webhook does not
 * subscribe.
 * @throws VaultError `validation_failed` naming every attribute that is wrong.
 */
export function replay(
  { store, clock, random }: WebhookWriting,
  caller: Caller,
  { id, replaying }: { readonly id: string; readonly replaying: Replaying },
): Decide {
  const { tenant } = caller;
  const newId = createTimedUuids(random);
  const cursorKey = tenant.keyring.secret('cursor');
  const { since, until, types } = readReplaying(replaying, clock.now());
  const route = `POST /webhooks/${id.toLowerCase()}/replay`;
  const start = replaying.start ?? undefined;
  const [after] = positionOfCursor<readonly [EventId]>(cursorKey, route, start) ?? [];
  return async () => {
    const now = clock.now();
    const row = await rowOf(store, 'webhooks', { tenant, id });
    const { events: subscribed } = openWebhook(openerFor(caller, 'webhook:update'), row).reveal();
    requireEnabled(row);
    const unknownAt = types?.findIndex((type) => !subscribed.includes(type)) ?? -1;
    if (unknownAt >= 0)
      throw invalid(`types[${unknownAt}]`, 'must be one of the events of the webhook');
    await requireFewWaiting(store, row);
    // Events of some types may be few among many.
    const found = await store.scan(
      dispatchedEvents({
        tenant: tenant.id,
        types: types ?? subscribed,
        from: after ?? firstTimedUuid<EventId>(since),
        to: firstTimedUuid<EventId>(until),
        limit: replayedMax + 1,
      }),
      payerOf(caller),
    );
    const events = found.slice(0, replayedMax);
    const next = found.length > replayedMax ? found[replayedMax]?.event_id : undefined;
    const { webhook_id } = row;
    const deliveries = events.map((event) => {
      const { sequence } = event;
      return deliveryRow(event, { id: newId<DeliveryId>(now), webhook: webhook_id, sequence, now });
    });
    const due_work = [await newNote(store, waitingOf(tenant.id), now)];
    const fact = { entity: 'webhook', id: webhook_id, operation: 'replay' } as const;
    return {
      change: {
        ...(deliveries.length > 0 && { insert: { deliveries, due_work } }),
        entries: [detailed(entryOf(caller, now, fact), `${events.length} events`)],
      },
      reply: {
        status: 202,
        body: {
          events: events.length,
          ...(next !== undefined && { next: sealCursor(cursorKey, route, [next]) }),
        },
      },
    };
  };
}

/** @throws VaultError `unprocessable` for a disabled webhook. */
function requireEnabled({ status }: Row<'webhooks'>): void {
  if (status === 'enabled') return;
  throw new VaultError('unprocessable', {
    public: 'The webhook is disabled; PUT it with the status enabled first.',
  });
}

async function requireFewWaiting(
  store: Store,
  { tenant_id: tenant, webhook_id: webhook }: Row<'webhooks'>,
): Promise<void> {
  const [counted] = await store.select(waitingUpTo({ tenant, webhook }, waitingMax));
  if ((counted?.count ?? 0) < waitingMax) return;
  throw new VaultError('unprocessable', {
    public: `${waitingMax} deliveries of the webhook wait already; replay once fewer do.`,
  });
}

interface ReplayQuery {
  readonly since: Instant;
  readonly until: Instant;
  readonly types: readonly EventType[] | undefined;
}

const timeForms = 'must be an ISO 8601 date-time';

function readReplaying({ since, until, types }: Replaying, now: Instant): ReplayQuery {
  const errors = createValidationErrors();
  const from = parseExpiry(since)?.at;
  const to =
    (until ?? undefined) === undefined ? instantAfter(now, 1) : parseExpiry(until ?? '')?.at;
  if (from === undefined) errors.add('since', timeForms);
  if (to === undefined) errors.add('until', timeForms);
  else if (from !== undefined && to <= from) errors.add('until', 'must be after since');
  const known = types?.flatMap((text, index) => {
    const type = parseEventType(text);
    if (type === undefined) errors.add(`types[${index}]`, unknownType(text));
    return type ?? [];
  });
  if (types?.length === 0) errors.add('types', 'must contain at least one event type');
  errors.settle();
  return { since: from ?? now, until: to ?? now, types: known };
}
