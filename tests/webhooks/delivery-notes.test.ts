/** Notes of waiting deliveries: whatever happens to a server, the next one finds the tenants with deliveries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantAfter, minute } from '../../src/base/clock.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { addWebhook, allowing, startReceiver } from '../support/receivers.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';

async function notesOf(tenant: TestTenant) {
  return (await tenant.rows('due_work')).filter(({ work }) => work === 'waiting deliveries');
}

onBothEngines('deliveries that wait', (engine) => {
  test('are sent after a start, also those that an earlier release left behind without a note', async (t) => {
    const receiver = await startReceiver(t);
    const environment = allowing(t, [receiver]);
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenant(vault);
    // The thread of this vault leaves them where they are.
    const until = instantAfter(vault.clock.now(), minute);
    const lease = { tenant_id: tenant.id, name: 'deliveries', holder: 'a killed server', until };
    await vault.running.vault.store.record({ insert: { leases: [lease] } });
    const webhook = await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    for (let count = 0; count < 3; count += 1) {
      const sent = { key: tenant.managementKey };
      const { status } = await tenant.send('POST', `/webhooks/${webhook}/test`, sent);
      assert.equal(status, 202);
    }
    assert.equal((await notesOf(tenant)).length, 3);
    await vault.stop();
    await engine.run(vault.place, `delete from due_work where work = 'waiting deliveries'`);
    const { place, clock } = vault;
    clock.advance(2 * minute);
    await startVault(t, engine, { place, clock, environment });
    await receiver.until((arrivals) => arrivals.length === 3);
  });

  test('have a note that says when the next one is due, and none once nothing waits', async (t) => {
    const receiver = await startReceiver(t);
    const environment = allowing(t, [receiver]);
    const clock = createStillClock();
    const vault = await startVault(t, engine, { clock, environment });
    const tenant = await newTenant(vault);
    await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    receiver.behave(answer(500));
    await tenant.token({ type: 'token', data: 1 });
    const dueAt = async () => {
      const [row] = await tenant.rows('deliveries');
      return row && row.due_at > clock.now() ? row.due_at : undefined;
    };
    while ((await dueAt()) === undefined) await nextLook();
    const due = await dueAt();
    const times = async () => (await notesOf(tenant)).map(({ due_at }) => due_at);
    while (!(await times()).every((at) => at === due)) await nextLook();
    assert.deepEqual(await times(), [due]);
    receiver.behave(answer());
    clock.advance(minute);
    await receiver.until((arrivals) => arrivals.length === 2);
    while ((await notesOf(tenant)).length > 0) await nextLook();
    assert.deepEqual(
      (await tenant.rows('deliveries')).map(({ state }) => state),
      ['delivered'],
    );
  });

  test('of a webhook that is enabled again are sent', async (t) => {
    const receiver = await startReceiver(t);
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const tenant = await newTenant(vault);
    const webhook = await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    receiver.behave(answer(410));
    await tenant.token({ type: 'token', data: 1 });
    await tenant.token({ type: 'token', data: 2 });
    const key = tenant.managementKey;
    const path = `/webhooks/${webhook}`;
    const status = async () => (await tenant.send('GET', path, { key })).body.status;
    while ((await status()) === 'enabled') await nextLook();
    receiver.behave(answer());
    const sent = receiver.arrivals.length;
    const { id: _id, tenant_id: _tenant, ...rest } = (await tenant.send('GET', path, { key })).body;
    const { name, url, events } = rest;
    const body = { name, url, events, status: 'enabled' };
    assert.equal((await tenant.send('PUT', path, { key, body })).status, 200);
    await tenant.token({ type: 'token', data: 3 });
    await receiver.until((arrivals) => arrivals.length > sent);
    const waiting = async () =>
      (await tenant.rows('deliveries')).filter(({ state }) => state === 'waiting');
    while ((await waiting()).length > 0) await nextLook();
  });
});
