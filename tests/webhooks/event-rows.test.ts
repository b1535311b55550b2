/** Events as they are stored: nobody but the vault can write one that opens, or number it. */

import assert from 'node:assert/strict';
import test from 'node:test';
import { type Instant, parseInstant } from '../../src/base/clock.ts';
import { VaultError } from '../../src/base/errors.ts';
import {
  type ApplicationId,
  createTimedUuids,
  type DeliveryId,
  type EventId,
  firstTimedUuid,
  newUuid,
  type TenantId,
  type WebhookId,
} from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import { requireProven } from '../../src/rules/proven-row.ts';
import { undispatchedEvents } from '../../src/store/event-queries/events.ts';
import { noSource } from '../../src/store/log-chain/entries.ts';
import { unverifiedColumns } from '../../src/store/stored-row.ts';
import { attemptsOf, deliveryRow } from '../../src/webhooks/events/delivery-row.ts';
import { envelopeOf } from '../../src/webhooks/events/envelope.ts';
import { eventRow, openEvent, sequenceProof } from '../../src/webhooks/events/event-row.ts';
import {
  eventTypeNames,
  eventTypes,
  parseEventType,
  testType,
} from '../../src/webhooks/events/types.ts';
import { openWebhook, webhookRow } from '../../src/webhooks/resource.ts';
import { onBothEngines } from '../support/engines.ts';
import { testOpener } from '../support/openings.ts';
import { asStored } from '../support/rows.ts';

const random = pooledRandom();
const newId = createTimedUuids(random);
const now = parseInstant(Date.now());
const keys = { id: newUuid<TenantId>(random), keyring: createKeyring(random) };
const application = newUuid<ApplicationId>(random);

const made = (at: Instant = now) =>
  eventRow(
    keys,
    {
      event_id: newId<EventId>(at),
      type: 'session.created',
      entity_id: 'a session',
      created_at: at,
      body: {
        data: { session: { id: 'a session', issued_to_application: { id: application } } },
        actor: { id: application, type: 'application' },
        trace_id: 'trace',
      },
    },
    random,
  );

const numbered = (row = made(), sequence = 7) => {
  const { event_id } = row;
  return { ...row, sequence, proof: sequenceProof(keys, { event_id, sequence }) };
};

const isAltered = (error: unknown) => error instanceof VaultError && error.code === 'integrity';

test('a receiver sees the event with the names that its applications have by then', () => {
  const row = numbered();
  const { envelope: seen } = envelopeOf(keys, row, (id) =>
    id === application ? 'its name' : undefined,
  );
  const named = { id: application, name: 'its name' };
  assert.deepEqual(seen, {
    id: row.event_id,
    type: 'session.created',
    timestamp: new Date(now).toISOString(),
    tenant_id: keys.id,
    trace_id: 'trace',
    sequence: 7,
    data: {
      session: { id: 'a session', issued_to_application: named },
      actor: { ...named, type: 'application' },
    },
  });
});

test('an event opens for its tenant alone, and only as it was written', () => {
  const row = numbered();
  const other = { id: newUuid<TenantId>(random), keyring: createKeyring(random) };
  const show = (shown: typeof row, of = keys) => envelopeOf(of, shown, () => undefined);
  assert.throws(() => show(row, other), isAltered);
  const alterations: Partial<typeof row>[] = [
    { event_id: newId<EventId>(now) },
    { type: 'token.created' },
    { entity_id: 'another' },
    { created_at: parseInstant(now + 1) },
    { sequence: 8 },
    { body: made().body },
    { proof: numbered(row, 8).proof },
    { proof: numbered().proof },
  ];
  for (const altered of alterations) {
    assert.throws(() => show({ ...row, ...altered }), isAltered, Object.keys(altered).join());
  }
  assert.throws(() => envelopeOf(keys, made(), () => undefined), isAltered);
});

test('the ids of one time ascend, and those of another time are apart', () => {
  const ids = Array.from({ length: 5000 }, () => newId<EventId>(now));
  assert.deepEqual(ids.toSorted(), ids);
  assert.equal(new Set(ids).size, ids.length);
  const later = parseInstant(now + 1);
  for (const id of ids) {
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.ok(id > firstTimedUuid(now) && id < firstTimedUuid(later));
  }
});

test('the test of a webhook is no type that webhooks can ask for', () => {
  assert.equal(parseEventType(testType), undefined);
  for (const name of eventTypeNames) {
    assert.equal(parseEventType(name), name);
    assert.ok(name.startsWith(eventTypes[name].entity.split('_', 1)[0] ?? ''), name);
  }
});

onBothEngines('stored events', (engine) => {
  test('events wait to be dispatched in the order of their commits, whatever their times', async (t) => {
    const store = await engine.store(t);
    const rows = [now, parseInstant(now - 5000), parseInstant(now + 5000)].map((at) => made(at));
    for (const row of rows) {
      const entry = {
        tenant_id: keys.id,
        created_at: now,
        actor_id: null,
        actor_type: 'system',
        entity_type: 'session',
        entity_id: 'a session',
        operation: 'create',
        message: 'Session created',
        result: 'success',
        disclosure: null,
        source: noSource,
        container: null,
        origin: null,
        trace_id: null,
      };
      assert.deepEqual(await store.commit({ insert: { events: [row] }, entries: [entry] }), {});
    }
    const waiting = await store.select(undispatchedEvents({ tenant: keys.id, limit: 10 }));
    assert.deepEqual(
      waiting.map(({ event_id }) => event_id),
      rows.map(({ event_id }) => event_id),
    );
    for (const key of waiting) {
      const row = await store.get('events', key);
      assert.equal(row && openEvent(testOpener(keys), row).trace_id, 'trace');
    }
    const [first] = await store.select(undispatchedEvents({ tenant: keys.id, limit: 1 }));
    assert.equal(first?.event_id, rows[0]?.event_id);
  });

  test('a delivery and a webhook are stored as they were made', async (t) => {
    const store = await engine.store(t);
    const webhook = newUuid<WebhookId>(random);
    const row = webhookRow(
      keys,
      {
        body: {
          url: 'https://receiver.example.com/',
          notify_email: null,
          events: ['token.created'],
          ordered: false,
          secrets: [{ text: 'whsec_', ends_at: null }],
        },
        random,
      },
      {
        tenant_id: keys.id,
        webhook_id: webhook,
        version: 1,
        name: 'a webhook',
        status: 'enabled',
        created_by: application,
        created_at: now,
        modified_by: null,
        modified_at: null,
      },
    );
    const delivery = deliveryRow(numbered(), {
      id: newId<DeliveryId>(now),
      webhook,
      sequence: 7,
      now,
    });
    const entry = {
      tenant_id: keys.id,
      created_at: now,
      actor_id: null,
      actor_type: 'system',
      entity_type: 'webhook',
      entity_id: webhook,
      operation: 'create',
      message: 'Webhook created',
      result: 'success',
      disclosure: null,
      source: noSource,
      container: null,
      origin: null,
      trace_id: null,
    };
    const insert = { webhooks: [row], deliveries: [delivery] };
    assert.deepEqual(await store.commit({ insert, entries: [entry] }), {});
    const { tenant_id, webhook_id, delivery_id } = delivery;
    const stored = await store.get('deliveries', { tenant_id, webhook_id, delivery_id });
    assert.deepEqual({ ...stored }, delivery);
    assert.deepEqual(attemptsOf(delivery), []);
    const storedHook = await store.get('webhooks', { tenant_id, webhook_id });
    assert.ok(storedHook);
    assert.equal(
      openWebhook(testOpener(keys), requireProven(keys, 'webhooks', storedHook)).reveal().url,
      'https://receiver.example.com/',
    );
    assert.throws(
      () =>
        requireProven(
          keys,
          'webhooks',
          asStored({ ...unverifiedColumns(storedHook), status: 'disabled' }),
        ),
      isAltered,
    );
  });
});
