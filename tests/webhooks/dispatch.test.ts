/** Dispatching: bounded, however many webhooks want an event. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantAfter, minute } from '../../src/base/clock.ts';
import { createTimedUuids } from '../../src/base/ids.ts';
import { deliveriesMax, dispatch } from '../../src/webhooks/deliveries/dispatch.ts';
import { createWebhooks } from '../../src/webhooks/deliveries/webhooks-of.ts';
import { onBothEngines } from '../support/engines.ts';
import { guarded } from '../support/guarded.ts';
import { addWebhook } from '../support/receivers.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('one transaction', (engine) => {
  test('makes no more deliveries than it may, and says that there is more', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { store, clock, random, tenants } = vault.running.vault;
    // The vault's own thread leaves the events to us.
    const until = instantAfter(clock.now(), minute);
    const lease = { tenant_id: tenant.id, name: 'deliveries', holder: 'this test', until };
    await store.record({ insert: { leases: [lease] } });
    const count = 100;
    const url = 'https://receiver.invalid/';
    for (let made = 0; made < count; made++) {
      await addWebhook(vault.running.vault, tenant.id, { url, events: ['token.created'] });
    }
    const eventsMax = deliveriesMax / count;
    for (let made = 0; made <= eventsMax; made++) await tenant.token({ type: 'token', data: made });
    const keys = await guarded(tenants, assert.fail).find(tenant.id);
    assert.ok(keys);
    const webhooks = createWebhooks({ store, clock });
    const tools = { store, clock, webhooks, newDeliveryId: createTimedUuids(random) };
    const first = await dispatch(tools, keys);
    assert.deepEqual([first.events, first.hasMore], [eventsMax, true]);
    assert.equal((await tenant.rows('deliveries')).length, deliveriesMax);
    const second = await dispatch(tools, keys);
    assert.deepEqual([second.events, second.hasMore], [1, false]);
    assert.equal(second.webhooks.size, count);
  });
});
