/** The attempts of a delivery, as they are stored: few, and nothing that somebody else wrote is taken for one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import type { Store } from '../../src/store/store.ts';
import type { Row } from '../../src/store/tables.ts';
import { attemptsStoredMax, settle } from '../../src/webhooks/deliveries/settle.ts';
import { createSettlements } from '../../src/webhooks/deliveries/settlements.ts';
import { type Attempt, attemptsOf, deliveryRow } from '../../src/webhooks/events/delivery-row.ts';
import { now, tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';
import { createWebhook, sendWebhook } from '../support/webhooks.ts';

const id = '0199a000-0000-7000-8000-000000000000' as never;
const delivery: Row<'deliveries'> = deliveryRow(
  { tenant_id: tenant, event_id: id, type: 'token.created', entity_id: 'an entity' },
  { id, webhook: id, sequence: 1, now },
);
const attempt: Attempt = { at: now, status: 500, milliseconds: 1, error: 'status' };
const strange = ['', 'x', '{}', 'null', '7', '[null,7,"x",{}]', '[{"at":1e300,"milliseconds":1}]'];

test('what is not an attempt is none', () => {
  for (const attempts of strange) assert.deepEqual(attemptsOf({ attempts }), [], attempts);
  const attempts = JSON.stringify([attempt, { ...attempt, status: 'x' }]);
  assert.deepEqual(attemptsOf({ attempts }), [attempt]);
});

onBothEngines('the attempts of a delivery', (engine) => {
  test('are settled whatever was written in their place, and the oldest are forgotten', async (t) => {
    const store: Store = await engine.store(t);
    const recordDelivery = createSettlements({ store, pause: () => Promise.resolve() });
    const tools = { recordDelivery, clock: { now: () => now }, random: pooledRandom() };
    const outcome = { status: 200, milliseconds: 1, error: undefined, retryAfter: undefined };
    const settled = async (attempts: string) => {
      const row = { ...delivery, attempts };
      await store.record({ insert: { deliveries: [row] } });
      assert.equal((await settle(tools, row, outcome)).state, 'delivered');
      const stored = await store.get('deliveries', row);
      await store.record({ remove: { deliveries: [row] } });
      assert.equal(stored?.state, 'delivered');
      return stored === undefined ? [] : attemptsOf(stored);
    };
    for (const attempts of strange) assert.equal((await settled(attempts)).length, 1, attempts);
    for (const count of [attemptsStoredMax - 1, attemptsStoredMax]) {
      const attempts = await settled(JSON.stringify(Array(count).fill(attempt)));
      assert.equal(attempts.length, attemptsStoredMax);
      assert.equal(attempts.at(-1)?.status, 200);
    }
  });

  test('are listed whatever was written in their place', async (t) => {
    const vault = await startVault(t, engine);
    const of = await newTenant(vault);
    const webhook = await createWebhook(of, { url: 'https://receiver.invalid/' });
    await sendWebhook(of, 'PUT', `/${webhook.id}`, { body: { ...webhook, status: 'disabled' } });
    const row = { ...delivery, tenant_id: of.id, webhook_id: webhook.id, attempts: '[{"at":7}]' };
    await vault.running.vault.store.record({ insert: { deliveries: [row] } });
    const { status, body } = await sendWebhook(of, 'GET', `/${webhook.id}/deliveries`);
    assert.equal(status, 200);
    assert.deepEqual(body.data[0].attempts, []);
  });
});
