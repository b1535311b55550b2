/** What waits by webhook: a bounded number of labels, whatever the number of webhooks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createBacklog, webhooksLabeledMax } from '../../src/webhooks/deliveries/backlog.ts';
import { deliveryRow } from '../../src/webhooks/events/delivery-row.ts';
import { now, tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const random = pooledRandom();
const id = () => newUuid(random) as never;

function waitingFor(webhook: never) {
  const event = { tenant_id: tenant, event_id: id(), type: 'token.created', entity_id: id() };
  return deliveryRow(event, { id: id(), webhook, sequence: 1, now });
}

onBothEngines('the backlog', (engine) => {
  test('names the webhooks for which most waits, and sums up the others', async (t) => {
    const store = await engine.store(t);
    const clock = { now: () => (now + 5_000) as typeof now };
    const read = createBacklog({ store, clock });
    assert.deepEqual(await read(), { count: 0, oldestSeconds: 0, byWebhook: new Map() });
    const webhooks = Array.from({ length: webhooksLabeledMax }, id);
    await store.record({
      insert: { deliveries: webhooks.flatMap((one) => [waitingFor(one), waitingFor(one)]) },
    });
    const named = await read();
    assert.ok(named);
    assert.deepEqual([...named.byWebhook.keys()].sort(), webhooks.toSorted());
    assert.deepEqual(named.byWebhook.get(webhooks[0] ?? ''), { count: 2, oldestSeconds: 5 });
    const fewer = [id(), id()];
    await store.record({ insert: { deliveries: fewer.map(waitingFor) } });
    const all = await read();
    assert.ok(all);
    assert.equal(all.count, 2 * webhooksLabeledMax + 2);
    assert.equal(all.byWebhook.size, webhooksLabeledMax + 1);
    assert.deepEqual(all.byWebhook.get('other'), { count: 2, oldestSeconds: 5 });
  });
});
