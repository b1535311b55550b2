/** Several servers on one database, and several threads: they share the work, and one continues for another. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leaseMs } from '../../src/queue/leases.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { addWebhook, allowing, startReceiver } from '../support/receivers.ts';
import { newTenant } from '../support/tenant.ts';
import { createStillClock, createTestClock, startVault } from '../support/vault.ts';

const rounds = 20;

test('two servers on one database deliver every event once, whoever committed it, in order', async (t) => {
  const engine = engineOf('postgres');
  const receiver = await startReceiver(t);
  const environment = allowing(t, [receiver]);
  const clock = createTestClock();
  const place = await engine.place(t);
  const first = await startVault(t, engine, { place, environment, clock });
  const second = await startVault(t, engine, { place, environment, clock });
  const tenant = await newTenant(first);
  const { url } = receiver;
  await addWebhook(first.running.vault, tenant.id, { url, ordered: true });
  // Both know of it by then.
  clock.advance(1_000);
  const { id } = (await tenant.token({ type: 'token', data: 1 })).body;
  for (let round = 0; round < rounds; round++) {
    const vault = round % 2 === 0 ? second : first;
    const read = await vault.send('GET', `/tokens/${id}`, { key: tenant.key });
    assert.equal(read.status, 200);
  }
  await receiver.until((arrivals) => arrivals.length === rounds + 1);
  const sequences = receiver.arrivals.map(({ event }) => event.sequence);
  assert.deepEqual(
    sequences,
    Array.from({ length: rounds + 1 }, (_, index) => index + 1),
  );
});

test('a new webhook gets what its own server commits next, while another server dispatches', async (t) => {
  const engine = engineOf('postgres');
  const receivers = [await startReceiver(t), await startReceiver(t)] as const;
  const environment = allowing(t, receivers);
  // What a server knows does not age.
  const clock = createStillClock();
  const place = await engine.place(t);
  const holder = await startVault(t, engine, { place, environment, clock });
  const tenant = await newTenant(holder);
  await addWebhook(holder.running.vault, tenant.id, { url: receivers[0].url });
  await tenant.token({ type: 'token', data: 1 });
  await receivers[0].until((arrivals) => arrivals.length === 1);
  const other = await startVault(t, engine, { place, environment, clock });
  await addWebhook(other.running.vault, tenant.id, { url: receivers[1].url });
  const body = { type: 'token', data: 2 };
  assert.equal((await other.send('POST', '/tokens', { key: tenant.key, body })).status, 201);
  await receivers[1].until((arrivals) => arrivals.length === 1);
});

test('a server that was killed is followed by another once its lease is over, and not before', async (t) => {
  const engine = engineOf('postgres');
  const receiver = await startReceiver(t);
  const environment = allowing(t, [receiver]);
  const vault = await startVault(t, engine, { environment });
  const tenant = await newTenant(vault);
  const until = vault.clock.now() + leaseMs;
  const lease = { tenant_id: tenant.id, name: 'deliveries', holder: 'a killed server', until };
  await vault.running.vault.store.record({ insert: { leases: [lease as never] } });
  await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
  await tenant.token({ type: 'token', data: 1 });
  vault.clock.advance(leaseMs / 2);
  // Whoever looks for the events of one tenant finds those of the other as well.
  const other = await newTenant(vault);
  await addWebhook(vault.running.vault, other.id, { url: receiver.url });
  for (let count = 1; count <= 3; count++) {
    await other.token({ type: 'token', data: count });
    await receiver.until((arrivals) => arrivals.length === count);
  }
  const isOfOther = receiver.arrivals.map(({ event }) => event.tenant_id === other.id);
  assert.deepEqual(isOfOther, [true, true, true]);
  vault.clock.advance(leaseMs);
  await receiver.until((arrivals) => arrivals.length === 4);
});

onBothEngines('webhooks of several threads', (engine) => {
  test('what any thread commits is delivered', async (t) => {
    const receiver = await startReceiver(t);
    const environment = { ...allowing(t, [receiver]), STRONGROOM_THREADS: '2' };
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    const made = Array.from({ length: rounds }, (_, data) => tenant.token({ type: 'token', data }));
    const ids = (await Promise.all(made)).map(({ body }) => body.id);
    await receiver.until((arrivals) => arrivals.length === rounds);
    const arrived = receiver.arrivals.map(({ event }) => event.data.token.id);
    assert.deepEqual(arrived.sort(), ids.sort());
  });
});
