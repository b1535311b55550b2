/** Events and deliveries: gone after thirty days, and deliveries with their webhook. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/clock.ts';
import { eventsKeptMs } from '../../../src/runtime/jobs/remove-events.ts';
import { onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { addWebhook, allowing, startReceiver } from '../../support/receivers.ts';
import { newTenant } from '../../support/tenant.ts';
import { startVault } from '../../support/vault.ts';

const job = 'remove old events';

onBothEngines('The job that removes old events', (engine) => {
  test('keeps them for thirty days, and a sequence for as long as its token', async (t) => {
    const receiver = await startReceiver(t);
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const tenant = await newTenant(vault);
    await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    const kept = (await tenant.token({ type: 'token', data: 1 })).body.id;
    const deleted = (await tenant.token({ type: 'token', data: 2 })).body.id;
    await tenant.send('DELETE', `/tokens/${deleted}`);
    await receiver.until((arrivals) => arrivals.length === 3);
    vault.clock.advance(eventsKeptMs - hour);
    assert.equal(await runJob(vault, job), 0);
    assert.equal((await tenant.rows('deliveries')).length, 3);
    vault.clock.advance(2 * hour);
    assert.equal(await runJob(vault, job), 3 + 3 + 1);
    assert.deepEqual(await tenant.rows('events'), []);
    assert.deepEqual(await tenant.rows('deliveries'), []);
    const ids = (await tenant.rows('event_sequences')).map(({ entity_id }) => entity_id);
    assert.ok(ids.includes(kept) && !ids.includes(deleted));
  });

  test('removes what is left of a webhook that was deleted', async (t) => {
    const receiver = await startReceiver(t);
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const tenant = await newTenant(vault);
    const id = await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    await tenant.token({ type: 'token', data: 1 });
    await receiver.until((arrivals) => arrivals.length === 1);
    assert.equal(await runJob(vault, job), 0);
    const key = tenant.managementKey;
    assert.equal((await tenant.send('DELETE', `/webhooks/${id}`, { key })).status, 204);
    assert.equal(await runJob(vault, job), 1);
    assert.deepEqual(await tenant.rows('deliveries'), []);
  });
});
