/** What is sent to a webhook because somebody asks: tests, redeliveries and replays; and the list of its deliveries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Instant, instantAfter, minute, parseInstant } from '../../src/base/clock.ts';
import {
  createTimedUuids,
  type DeliveryId,
  type EventId,
  type WebhookId,
} from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import type { Row } from '../../src/store/tables.ts';
import { deliveryRow } from '../../src/webhooks/events/delivery-row.ts';
import { envelopeOf } from '../../src/webhooks/events/envelope.ts';
import { eventRow, sequenceProof } from '../../src/webhooks/events/event-row.ts';
import { replayedMax, waitingMax } from '../../src/webhooks/send-again.ts';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createWebhook, leastWebhook, sendWebhook } from '../support/webhooks.ts';

const random = pooledRandom();
const newId = createTimedUuids(random);
const missing = '00000000-0000-4000-8000-000000000000';
const url = 'https://receiver.invalid/events';

/** Events as they are once they were dispatched, without any deliveries. */
async function dispatched(
  tenant: TestTenant,
  events: readonly { readonly type: string; readonly at: Instant }[],
): Promise<Row<'events'>[]> {
  const { store, tenants } = tenant.vault.running.vault;
  const keys = await tenants.find(tenant.id);
  const [entry] = await tenant.rows('logs');
  assert.ok(keys && entry);
  const rows = events.map(({ type, at }, index) => {
    const event_id = newId<EventId>(at);
    const columns = { event_id, type, entity_id: `entity ${index}`, created_at: at };
    const row = eventRow(keys, { ...columns, body: { data: {}, trace_id: null } }, random);
    const sequence = index + 1;
    return { ...row, sequence, proof: sequenceProof(keys, { event_id, sequence }) };
  });
  await store.commit({ insert: { events: rows }, entries: [entry] });
  return rows;
}

/** A delivery that was made, for each of them. */
async function delivered(
  tenant: TestTenant,
  webhook: WebhookId,
  events: readonly Row<'events'>[],
): Promise<Row<'deliveries'>[]> {
  const [entry] = await tenant.rows('logs');
  assert.ok(entry);
  const rows = events.map((event) => {
    const now = event.created_at;
    const sequence = event.sequence ?? 0;
    const row = deliveryRow(event, { id: newId<DeliveryId>(now), webhook, sequence, now });
    const attempts = [
      { at: now, status: 500, milliseconds: 3.5, error: 'status' },
      { at: now + 5000, milliseconds: 15000, error: 'timeout' },
      { at: now + 9000, status: 204, milliseconds: 2 },
    ];
    return { ...row, state: 'delivered', attempts: JSON.stringify(attempts) } as const;
  });
  const { store } = tenant.vault.running.vault;
  await store.commit({ insert: { deliveries: rows }, entries: [entry] });
  return rows;
}

onBothEngines('the deliveries of a webhook', (engine) => {
  const newTenant = tenantsOf(engine);

  test('POST test 202: an event of its own type, for this webhook alone', async () => {
    const tenant = await newTenant();
    const { id, name } = await createWebhook(tenant, { url, events: ['reactor.failed'] });
    await createWebhook(tenant, { url });
    const { status, body } = await sendWebhook(tenant, 'POST', `/${id}/test`);
    assert.equal(status, 202);
    assert.deepEqual([body.type, body.state, body.attempts], ['webhook.test', 'waiting', []]);
    const deliveries = await tenant.rows('deliveries');
    assert.deepEqual(
      deliveries.map(({ webhook_id, event_id }) => [webhook_id, event_id]),
      [[id, body.event_id]],
    );
    const [event] = await tenant.rows('events');
    const keys = await tenant.vault.running.vault.tenants.find(tenant.id);
    assert.ok(event && keys);
    const { envelope: sent } = envelopeOf(keys, event, () => undefined);
    assert.deepEqual([sent['type'], sent['sequence']], ['webhook.test', 0]);
    const { webhook } = sent['data'] as { webhook: unknown };
    assert.deepEqual(webhook, { id, name });
    assert.deepEqual(await tenant.logged('webhook'), ['create', 'create', 'test']);
  });

  test('GET deliveries 200: newest first, page by page, with what came of each attempt', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url });
    const { id: other } = await createWebhook(tenant, { url });
    const now = tenant.vault.clock.now();
    const at = (ago: number) => parseInstant(now - ago);
    const events = await dispatched(
      tenant,
      [3000, 3000, 2000, 1000].map((ago) => ({ type: 'reactor.failed', at: at(ago) })),
    );
    const rows = await delivered(tenant, id, events);
    await delivered(tenant, other, events.slice(0, 1));
    const whole = await sendWebhook(tenant, 'GET', `/${id}/deliveries`);
    assert.equal(whole.status, 200);
    assert.deepEqual(
      whole.body.data.map((one: { id: string }) => one.id),
      rows.map(({ delivery_id }) => delivery_id).reverse(),
    );
    const [newest] = whole.body.data;
    const { at: first, ...attempt } = newest.attempts[0];
    assert.equal(Date.parse(first), now - 1000);
    assert.deepEqual(attempt, { status: 500, milliseconds: 3.5, error: 'status' });
    assert.equal('status' in newest.attempts[1], false);
    assert.equal('error' in newest.attempts[2], false);
    assert.deepEqual(
      [newest.event_id, newest.type, newest.state, 'due_at' in newest],
      [events[3]?.event_id, 'reactor.failed', 'delivered', false],
    );
    const walked: string[] = [];
    let start: string | undefined;
    do {
      const query = `size=3${start === undefined ? '' : `&start=${start}`}`;
      const { body } = await sendWebhook(tenant, 'GET', `/${id}/deliveries?${query}`);
      walked.push(...body.data.map((one: { id: string }) => one.id));
      start = body.pagination.next;
    } while (start !== undefined);
    assert.deepEqual(walked, rows.map(({ delivery_id }) => delivery_id).reverse());
    const none = await sendWebhook(tenant, 'GET', `/${id}/deliveries?state=failed`);
    assert.deepEqual(none.body, { pagination: { page_size: 20 }, data: [] });
    const { next } = (await sendWebhook(tenant, 'GET', `/${id}/deliveries?size=1`)).body.pagination;
    for (const query of ['size=0', 'size=101', 'state=lost', 'start=x', 'page=2']) {
      assert.equal((await sendWebhook(tenant, 'GET', `/${id}/deliveries?${query}`)).status, 400);
    }
    const foreign = await sendWebhook(tenant, 'GET', `/${other}/deliveries?start=${next}`);
    assert.equal(foreign.status, 400);
  });

  test('POST redeliver 202: the same event is due again, and its attempts stay', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url });
    const { id: other } = await createWebhook(tenant, { url });
    const at = tenant.vault.clock.now();
    const events = await dispatched(tenant, [{ type: 'reactor.failed', at }]);
    const [row] = await delivered(tenant, id, events);
    assert.ok(row);
    const path = `/deliveries/${row.delivery_id}/redeliver`;
    const { status, body } = await sendWebhook(tenant, 'POST', `/${id}${path}`);
    assert.equal(status, 202);
    const { event_id, delivery_id } = row;
    assert.deepEqual(
      [body.id, body.event_id, body.state, body.attempts.length],
      [delivery_id, event_id, 'waiting', 3],
    );
    assert.ok(body.due_at);
    assert.equal((await tenant.rows('deliveries')).length, 1);
    for (const wrong of [`/${other}${path}`, `/${id}/deliveries/${missing}/redeliver`]) {
      assert.equal((await sendWebhook(tenant, 'POST', wrong)).status, 404, wrong);
    }
    const entries = (await tenant.rows('logs')).filter(({ entity_id }) => entity_id === id);
    assert.ok(
      entries.some(({ message }) => message === `Webhook delivery repeated: ${delivery_id}`),
    );
  });

  test('POST replay 202: what happened in a time, of types that the webhook asks for', async () => {
    const tenant = await newTenant();
    const types = ['token.created', 'token.deleted', 'reactor.failed'];
    const { id } = await createWebhook(tenant, { url, events: types.slice(0, 2) });
    const now = tenant.vault.clock.now();
    const day = 86_400_000;
    const at = (days: number) => parseInstant(now - days * day);
    await dispatched(
      tenant,
      [3, 2, 1].flatMap((days) => types.map((type) => ({ type, at: at(days) }))),
    );
    const replay = async (body: object) => {
      const answer = await sendWebhook(tenant, 'POST', `/${id}/replay`, { body });
      assert.equal(answer.status, 202, answer.text);
      return answer.body;
    };
    const since = new Date(at(2)).toISOString();
    assert.deepEqual(await replay({ since }), { events: 4 });
    assert.deepEqual(await replay({ since, until: new Date(at(1)).toISOString() }), { events: 2 });
    assert.deepEqual(await replay({ since, types: ['token.deleted'] }), { events: 2 });
    assert.deepEqual(await replay({ since: new Date(at(0.5)).toISOString() }), { events: 0 });
    const deliveries = await tenant.rows('deliveries');
    assert.equal(deliveries.length, 8);
    assert.ok(deliveries.every(({ webhook_id }) => webhook_id === id));
    for (const { event_id, sequence, type } of deliveries) {
      const event = (await tenant.rows('events')).find((one) => one.event_id === event_id);
      assert.deepEqual([event?.sequence, event?.type], [sequence, type]);
    }
    const entries = (await tenant.rows('logs')).filter(({ operation }) => operation === 'replay');
    assert.deepEqual(entries.map(({ message }) => message).sort(), [
      'Webhook events replayed: 0 events',
      'Webhook events replayed: 2 events',
      'Webhook events replayed: 2 events',
      'Webhook events replayed: 4 events',
    ]);
  });

  test('POST replay 202: more events than one request sends are sent by the next ones', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url, events: ['reactor.failed'] });
    const now = tenant.vault.clock.now();
    await dispatched(
      tenant,
      Array.from({ length: replayedMax + 1 }, () => ({ type: 'reactor.failed', at: now })),
    );
    const since = new Date(now).toISOString();
    const replay = (start?: string) =>
      sendWebhook(tenant, 'POST', `/${id}/replay`, { body: { since, start } });
    const first = (await replay()).body;
    assert.equal(first.events, replayedMax);
    const { status, body } = await replay(first.next);
    assert.deepEqual([status, body], [202, { events: 1 }]);
    const events = (await tenant.rows('deliveries')).map(({ event_id }) => event_id);
    assert.equal(new Set(events).size, replayedMax + 1);
    assert.equal((await replay('x')).status, 400);
  });

  test('POST replay 422: while as many deliveries wait as may be', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url, events: ['reactor.failed'] });
    const { store, clock } = tenant.vault.running.vault;
    // Nothing takes them off meanwhile: the server that does so is another one.
    const until = instantAfter(clock.now(), minute);
    const lease = { tenant_id: tenant.id, name: 'deliveries', holder: 'another', until };
    await store.record({ insert: { leases: [lease] } });
    const now = clock.now();
    const [event] = await dispatched(tenant, [{ type: 'reactor.failed', at: now }]);
    assert.ok(event);
    const waiting = (count: number) =>
      Array.from({ length: count }, () =>
        deliveryRow(event, { id: newId<DeliveryId>(now), webhook: id, sequence: 1, now }),
      );
    const replay = () =>
      sendWebhook(tenant, 'POST', `/${id}/replay`, {
        body: { since: new Date(now).toISOString() },
      });
    await store.record({ insert: { deliveries: waiting(waitingMax - 1) } });
    assert.deepEqual((await replay()).body, { events: 1 });
    const { status, text } = await replay();
    assert.equal(status, 422);
    assert.match(text, new RegExp(String(waitingMax)));
  });

  test('POST replay 400: times and types that cannot be', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url });
    const since = new Date(tenant.vault.clock.now() - 5000).toISOString();
    const flaws = [
      [{}, 'since'],
      [{ since: 'yesterday' }, 'since'],
      [{ since, until: 'today' }, 'until'],
      [{ since, until: since }, 'until'],
      [{ since, types: [] }, 'types'],
      [{ since, types: ['token:created'] }, 'types[0]'],
      [{ since, types: ['token.created', 'token.deleted'] }, 'types[1]'],
      [{ since, limit: 1 }, 'limit'],
    ] as const;
    for (const [body, name] of flaws) {
      const answer = await sendWebhook(tenant, 'POST', `/${id}/replay`, { body });
      assert.equal(answer.status, 400, answer.text);
      assert.deepEqual(Object.keys(answer.body.errors), [name]);
    }
    assert.deepEqual(await tenant.rows('deliveries'), []);
  });

  test('422: nothing is sent to a webhook that is disabled', async () => {
    const tenant = await newTenant();
    const { id } = await createWebhook(tenant, { url });
    const at = tenant.vault.clock.now();
    const events = await dispatched(tenant, [{ type: 'token.created', at }]);
    const [row] = await delivered(tenant, id, events);
    const body = { ...leastWebhook, url, status: 'disabled' };
    await sendWebhook(tenant, 'PUT', `/${id}`, { body });
    const requests = [
      ['/test'],
      [`/deliveries/${row?.delivery_id}/redeliver`],
      ['/replay', { since: new Date(at).toISOString() }],
    ] as const;
    for (const [path, sent] of requests) {
      const answer = await sendWebhook(tenant, 'POST', `/${id}${path}`, { body: sent });
      assert.equal(answer.status, 422, path);
      assert.match(answer.body.detail, /disabled/);
    }
    const stored = await tenant.rows('deliveries');
    assert.deepEqual(
      stored.map(({ state }) => state),
      ['delivered'],
    );
  });
});
