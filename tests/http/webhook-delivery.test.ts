/** Events on their way to receivers: signed, at least once, in order where asked for, again when refused. */
import assert from 'node:assert/strict';
import { constants, createVerify } from 'node:crypto';
import { test } from 'node:test';
import { day, hour, minute, second } from '../../src/base/clock.ts';
import type { WebhookId } from '../../src/base/ids.ts';
import { attemptsMax } from '../../src/webhooks/deliveries/receiver.ts';
import { attemptsOf } from '../../src/webhooks/events/delivery-row.ts';
import { answer, hang } from '../support/destination.ts';
import { type Engine, type EngineName, onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import {
  type Arrival,
  addWebhook,
  allowing,
  type Receiver,
  startReceiver,
  verifyStandard,
} from '../support/receivers.ts';
import type { Lender } from '../support/temporary.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

async function start(t: Lender, engine: Engine, receivers: readonly Receiver[]) {
  const environment = allowing(t, receivers);
  const vault = await startVault(t, engine, { environment });
  return { vault, tenant: await newTenant(vault) };
}

const processOf = (vault: TestVault) => vault.running.vault;

onBothEngines('delivery', (engine) => {
  test('what happens to a token arrives, signed in both ways, in its order, with who did it', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    const token = (await tenant.token({ type: 'token', data: 'a value' })).body;
    await tenant.send('GET', `/tokens/${token.id}`);
    await tenant.send('DELETE', `/tokens/${token.id}`);
    await receiver.until((arrivals) => arrivals.length === 3);
    const ofToken = receiver.arrivals.map(({ event }) => event);
    const inOrder = ofToken.toSorted((one, other) => one.sequence - other.sequence);
    assert.deepEqual(
      inOrder.map(({ type, sequence }) => [type, sequence]),
      [
        ['token.created', 1],
        ['token.read', 2],
        ['token.deleted', 3],
      ],
    );
    const publicKey = (await vault.send('GET', '/keys/webhooks.v1.key')).text;
    for (const arrival of receiver.arrivals) {
      verifyStandard(arrival);
      const { headers, body, event } = arrival;
      assert.equal(headers['svc-signature-version'], 'v1');
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      const verifier = createVerify('SHA256').update(body);
      const signature = headers['svc-signature'] ?? '';
      assert.ok(verifier.verify({ key: publicKey, padding }, signature, 'base64'));
      assert.equal(headers['webhook-id'], event.id);
      assert.equal(event.tenant_id, tenant.id);
      assert.equal(event.data.token.id, token.id);
      assert.equal(event.data.actor.type, 'application');
      assert.ok(event.data.actor.name);
      assert.ok(Math.abs(Date.parse(arrival.delivered_at) - Date.now()) < minute);
      assert.doesNotMatch(body.toString(), /a value/);
    }
  });

  test('a delivery says through which vaults the request came that caused its event', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    const body = { type: 'token', data: 'a value' };
    const headers = { 'cdn-loop': 'strongroom-0123456789abcdef, other.example;v=1' };
    assert.equal((await tenant.send('POST', '/tokens', { body, headers })).status, 201);
    assert.equal((await tenant.send('POST', '/tokens', { body })).status, 201);
    await receiver.until((arrivals) => arrivals.length === 2);
    const [first, second_] = receiver.arrivals.map((arrival) => arrival.headers['cdn-loop'] ?? '');
    const lists = [first, second_].toSorted((one = '', other = '') => other.length - one.length);
    assert.match(
      lists[0] ?? '',
      /^strongroom-0123456789abcdef, other\.example;v=1, strongroom-[0-9a-f]{16}$/,
    );
    assert.match(lists[1] ?? '', /^strongroom-[0-9a-f]{16}$/);
  });

  test('a failed delivery comes again by the schedule, with the same id, and the attempts are recorded', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    receiver.behave(answer(500, [], 'words of the receiver'));
    await tenant.token({ type: 'token', data: 1 });
    for (const [count, delay] of [5 * second, 5 * minute, 30 * minute, 2 * hour].entries()) {
      await receiver.until((arrivals) => arrivals.length === count + 1);
      await untilAttempts(tenant, count + 1);
      if (count === 3) receiver.behave(answer(200));
      vault.clock.advance(Math.ceil(1.1 * delay));
    }
    await receiver.until((arrivals) => arrivals.length === 5);
    const delivery = await untilState(tenant, 'delivered');
    const statuses = attemptsOf(delivery).map(({ status, error }) => [status, error]);
    const failed = Array.from({ length: 4 }, () => [500, 'status']);
    assert.deepEqual(statuses, [...failed, [200, undefined]]);
    const ids = receiver.arrivals.map(({ headers }) => headers['webhook-id']);
    assert.equal(new Set(ids).size, 1);
    const times = receiver.arrivals.map(({ delivered_at }) => delivered_at);
    assert.equal(new Set(times).size, 5);
    assert.doesNotMatch(JSON.stringify(delivery), /words of the receiver/);
  });

  test('a receiver that hangs, and one that fails, hold up no other, nor a redirect anybody', async (t) => {
    const receivers = await Promise.all(Array.from({ length: 4 }, () => startReceiver(t)));
    const [hanging, failing, redirecting, good] = receivers as [
      Receiver,
      Receiver,
      Receiver,
      Receiver,
    ];
    const inside = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, receivers);
    for (const { url } of receivers) await addWebhook(processOf(vault), tenant.id, { url });
    hanging.behave(hang);
    failing.behave(answer(500));
    redirecting.behave(answer(307, ['location', inside.url]));
    for (let count = 0; count < 30; count++) await tenant.token({ type: 'token', data: count });
    await good.until((arrivals) => arrivals.length === 30);
    assert.ok(hanging.arrivals.length <= attemptsMax);
    assert.equal(inside.arrivals.length, 0);
  });

  test('410 disables at once, five days of failures disable, and the log says so', async (t) => {
    const [gone, failing] = [await startReceiver(t), await startReceiver(t)];
    const { vault, tenant } = await start(t, engine, [gone, failing]);
    const ids = [gone, failing].map(({ url }) => addWebhook(processOf(vault), tenant.id, { url }));
    const [goneId, failingId] = (await Promise.all(ids)) as [WebhookId, WebhookId];
    gone.behave(answer(410));
    failing.behave(answer(503));
    await tenant.token({ type: 'token', data: 1 });
    await untilDisabled(tenant, goneId);
    assert.equal(await statusOf(tenant, failingId), 'enabled');
    await untilFailing(tenant, failingId);
    vault.clock.advance(5 * day - minute);
    await failing.until((arrivals) => arrivals.length === 2);
    await untilAttempts(tenant, 2);
    assert.equal(await statusOf(tenant, failingId), 'enabled');
    vault.clock.advance(hour);
    await untilDisabled(tenant, failingId);
    const entries = (await tenant.rows('logs')).filter((entry) => entry.entity_type === 'webhook');
    const disabled = entries.filter(({ operation }) => operation === 'disable');
    assert.deepEqual(disabled.map(({ entity_id }) => entity_id).sort(), [goneId, failingId].sort());
    assert.equal(gone.arrivals.length, 1);
  });

  test('410 disables before the next attempt begins, however many wait', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    const [first, others] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    t.after(() => others.resolve());
    let attempts = 0;
    receiver.behave(async (exchange) => {
      attempts += 1;
      if (attempts === 1) await first.promise;
      else if (attempts <= attemptsMax) await others.promise;
      await answer(410)(exchange);
    });
    const id = await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    for (let count = 0; count < 40; count++) await tenant.token({ type: 'token', data: count });
    await receiver.until((arrivals) => arrivals.length === attemptsMax);
    first.resolve();
    await untilDisabled(tenant, id);
    assert.equal(receiver.arrivals.length, attemptsMax);
    others.resolve();
    await poll(async () => {
      const failed = (await tenant.rows('deliveries')).filter(({ state }) => state === 'failed');
      return failed.length === attemptsMax || undefined;
    });
    assert.equal(receiver.arrivals.length, attemptsMax);
  });

  test('a success ends the days of failures, also where it is not recorded itself', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    const id = await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    receiver.behave(answer(503));
    await tenant.token({ type: 'token', data: 1 });
    await untilFailing(tenant, id as WebhookId);
    // As if the process had ended before the second of the two commits.
    await engine.run(vault.place, refusingToRecord[engine.name]);
    receiver.behave(answer(200));
    vault.clock.advance(minute);
    await receiver.until((arrivals) => arrivals.length === 2);
    await poll(async () => (await tenant.rows('webhook_failures')).length === 0 || undefined);
    const [delivery] = await tenant.rows('deliveries');
    assert.equal(delivery?.state, 'waiting');
  });

  test('ordered: of one token nothing arrives before what came first, and other tokens go on', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url, ordered: true });
    const held = (await tenant.token({ type: 'token', data: 1 })).body.id;
    await receiver.until((arrivals) => arrivals.length === 1);
    receiver.behave((exchange) =>
      answer(isAbout(receiver.arrivals.at(-1), held) ? 500 : 200)(exchange),
    );
    for (let count = 0; count < 5; count++) await tenant.send('GET', `/tokens/${held}`);
    const other = (await tenant.token({ type: 'token', data: 2 })).body.id;
    for (let count = 0; count < 5; count++) await tenant.send('GET', `/tokens/${other}`);
    await receiver.until((arrivals) => arrivals.filter((one) => isAbout(one, other)).length === 6);
    assert.deepEqual(sequencesOf(receiver, other), [1, 2, 3, 4, 5, 6]);
    assert.deepEqual([...new Set(sequencesOf(receiver, held))], [1, 2]);
    receiver.behave(answer(200));
    vault.clock.advance(hour);
    await receiver.until(
      (arrivals) => isAbout(arrivals.at(-1), held) && arrivals.at(-1)?.event.sequence === 6,
    );
    const once = sequencesOf(receiver, held).filter((one, at, all) => one !== all[at - 1]);
    assert.deepEqual(once, [1, 2, 3, 4, 5, 6]);
  });

  test('what was waiting when the vault stopped arrives after its next start', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    receiver.behave(answer(500));
    await tenant.token({ type: 'token', data: 1 });
    await untilAttempts(tenant, 1);
    await vault.stop();
    receiver.behave(answer(200));
    const environment = allowing(t, [receiver]);
    const next = await startVault(t, engine, { place: vault.place, environment });
    next.clock.advance(minute);
    await receiver.until((arrivals) => arrivals.length === 2);
    const [first, second] = receiver.arrivals;
    assert.equal(second?.event.id, first?.event.id);
  });

  test('metrics count what waits and what became of attempts', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    const webhook = await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    await tenant.token({ type: 'token', data: 1 });
    await receiver.until((arrivals) => arrivals.length === 1);
    await untilState(tenant, 'delivered');
    receiver.behave(answer(500));
    await tenant.token({ type: 'token', data: 2 });
    await untilAttempts(tenant, 1);
    vault.clock.advance(second);
    const attempts = (outcome: string) =>
      `strongroom_webhook_attempts_total{webhook="${webhook}",outcome="${outcome}"} 1`;
    // An attempt is counted once it is recorded.
    const text = await poll(async () => {
      const shown = await vault.send('GET', '/metrics', { key: tenant.managementKey });
      return shown.text.includes(attempts('retried')) ? shown.text : undefined;
    });
    assert.ok(text.includes(attempts('delivered')), text);
    assert.match(text, /^strongroom_webhook_deliveries_waiting 1$/m);
    assert.match(text, /^strongroom_webhook_deliveries_oldest_seconds [1-9]/m);
    assert.ok(text.includes(`strongroom_webhook_waiting{webhook="${webhook}"} 1`), text);
    assert.match(
      text,
      new RegExp(`^strongroom_webhook_oldest_seconds.webhook="${webhook}". [1-9]`, 'm'),
    );
    receiver.behave(answer());
    vault.clock.advance(minute);
    await untilAllDelivered(tenant);
    const later = (await vault.send('GET', '/metrics', { key: tenant.managementKey })).text;
    assert.doesNotMatch(later, /^strongroom_webhook_(?:waiting|oldest_seconds)\{/m);
  });
});

function isAbout(arrival: Arrival | undefined, token: string): boolean {
  return arrival?.event.data.token?.id === token;
}

function sequencesOf(receiver: Receiver, token: string): number[] {
  return receiver.arrivals.flatMap((one) => (isAbout(one, token) ? [one.event.sequence] : []));
}

/** Polls the database: the vault notifies no test of what it records for itself. */
async function poll<R>(look: () => Promise<R | undefined>): Promise<R> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await nextLook();
  }
}

function untilState(tenant: TestTenant, state: string) {
  return poll(async () => (await tenant.rows('deliveries')).find((row) => row.state === state));
}

function untilAllDelivered(tenant: TestTenant) {
  return poll(async () => {
    const rows = await tenant.rows('deliveries');
    return rows.every(({ state }) => state === 'delivered') ? rows : undefined;
  });
}

function untilAttempts(tenant: TestTenant, count: number) {
  return poll(async () =>
    (await tenant.rows('deliveries')).find(
      (row) => row.state !== 'delivered' && attemptsOf(row).length === count,
    ),
  );
}

const refusingToRecord: Readonly<Record<EngineName, string>> = {
  sqlite: `create trigger waits before update on deliveries when new.state = 'delivered'
    begin select raise(abort, 'it waits'); end`,
  postgres: `alter table deliveries add constraint waits check (state <> 'delivered') not valid`,
};

function untilFailing(tenant: TestTenant, webhook: WebhookId) {
  return poll(async () =>
    (await tenant.rows('webhook_failures')).find(({ webhook_id }) => webhook_id === webhook),
  );
}

async function statusOf(tenant: TestTenant, webhook: WebhookId) {
  const rows = await tenant.rows('webhooks');
  return rows.find(({ webhook_id }) => webhook_id === webhook)?.status;
}

function untilDisabled(tenant: TestTenant, webhook: WebhookId) {
  return poll(async () => ((await statusOf(tenant, webhook)) === 'disabled' ? true : undefined));
}
