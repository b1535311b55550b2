/** One webhook for which something waits, when the vault itself fails with some of it. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantAfter, minute, parseInstant } from '../../src/base/clock.ts';
import { createForward } from '../../src/outbound/forward.ts';
import { failurePauses } from '../../src/queue/lanes.ts';
import { createSlots } from '../../src/queue/slots.ts';
import type { Store } from '../../src/store/store.ts';
import { createNames } from '../../src/webhooks/deliveries/names.ts';
import { createRecentEnvelopes } from '../../src/webhooks/deliveries/prepare.ts';
import { createReceiver } from '../../src/webhooks/deliveries/receiver.ts';
import { createSettlements } from '../../src/webhooks/deliveries/settlements.ts';
import { createWebhooks } from '../../src/webhooks/deliveries/webhooks-of.ts';
import { onBothEngines } from '../support/engines.ts';
import { guarded } from '../support/guarded.ts';
import { addWebhook, allowing, startReceiver } from '../support/receivers.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const tests = 3;

onBothEngines('a webhook', (engine) => {
  test('loses nothing when its events cannot be read for a while', async (t) => {
    const receiver = await startReceiver(t);
    const { destination } = receiver;
    const vault = await startVault(t, engine, { environment: allowing(t, [receiver]) });
    const tenant = await newTenant(vault);
    const { store, ...process } = vault.running.vault;
    // Its own thread leaves them to us.
    const until = instantAfter(vault.clock.now(), minute);
    const lease = { tenant_id: tenant.id, name: 'deliveries', holder: 'this test', until };
    await store.record({ insert: { leases: [lease] } });
    const webhook = await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    const key = tenant.managementKey;
    for (let count = 0; count < tests; count++) {
      await tenant.send('POST', `/webhooks/${webhook}/test`, { key });
    }
    let isBroken = true;
    const get: Store['get'] = async (table, row) => {
      if (table === 'events' && isBroken) throw new Error('the database is away');
      return store.get(table, row);
    };
    const { clock } = process;
    let failures = 0;
    const idle = Promise.withResolvers<void>();
    const tools = {
      ...{ ...process, store: { ...store, get } },
      tenants: guarded(process.tenants, assert.fail),
      webhooks: createWebhooks({ store, clock }),
      withNames: createNames({ store, clock }),
      recent: createRecentEnvelopes(clock),
      forward: createForward({
        vaultName: 'strongroom-0000000000000000',
        allow: new Set([destination.name]),
        authorities: [destination.authority.cert],
      }),
      messages: {
        sign: async ({ event }: { readonly event: string }) => {
          const text = JSON.stringify({ delivered_at: '', event: { id: event } });
          return { body: Buffer.from(text), headers: [] };
        },
        signAhead: () => undefined,
      },
      recordDelivery: createSettlements({ store, pause: () => Promise.resolve() }),
      slots: createSlots({ allMax: tests, tenantMax: tests }),
      isHeld: () => true,
      onAttempt: () => undefined,
      onRetry: () => undefined,
      onFailure: () => {
        failures += 1;
      },
      aborted: new AbortController().signal,
    };
    const waiting = createReceiver(tools, { tenant: tenant.id, webhook }, idle.resolve);
    waiting.wake();
    await idle.promise;
    assert.equal(failures, tests);
    assert.equal(receiver.arrivals.length, 0);
    isBroken = false;
    // The lane rests after each failure.
    vault.clock.advance(failurePauses.maxMs);
    waiting.wake();
    await receiver.until((arrivals) => arrivals.length === tests);
    await waiting.stop();
    const states = (await tenant.rows('deliveries')).map(({ state, due_at }) => [
      state,
      due_at <= parseInstant(clock.now()),
    ]);
    assert.deepEqual(states, Array(tests).fill(['delivered', true]));
  });
});
