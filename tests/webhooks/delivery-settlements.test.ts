/** What became of deliveries is recorded together, and one that somebody else changed takes nothing from the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import type { Amendment } from '../../src/store/amendments.ts';
import type { Bookkeeping } from '../../src/store/change.ts';
import {
  createSettlements,
  settledTogetherMax,
} from '../../src/webhooks/deliveries/settlements.ts';
import { deliveryRow } from '../../src/webhooks/events/delivery-row.ts';
import { now, tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const random = pooledRandom();
const pause = () => Promise.resolve();
const id = () => newUuid(random) as never;

function newDelivery() {
  const event = { tenant_id: tenant, event_id: id(), type: 'token.created', entity_id: id() };
  return deliveryRow(event, { id: id(), webhook: id(), sequence: 1, now });
}

function delivered(row: ReturnType<typeof newDelivery>): Amendment<'deliveries'> {
  const { state: was_state, due_at: was_due_at } = row;
  return { ...row, state: 'delivered', was_state, was_due_at };
}

onBothEngines('deliveries that end', (engine) => {
  test('while others are recorded are recorded together, in batches of a bounded size', async (t) => {
    const store = await engine.store(t);
    const rows = Array.from({ length: settledTogetherMax + 2 }, newDelivery);
    await store.record({ insert: { deliveries: rows } });
    const sizes: (number | undefined)[] = [];
    const record = (work: Bookkeeping) => {
      sizes.push(work.amend?.deliveries?.length);
      return store.record(work);
    };
    const settle = createSettlements({ store: { record }, pause });
    await Promise.all(rows.map((row) => settle(delivered(row))));
    assert.deepEqual(sizes, [1, settledTogetherMax, 1]);
    for (const row of rows) assert.equal((await store.get('deliveries', row))?.state, 'delivered');
  });

  test('are recorded also where one of them was changed or removed meanwhile', async (t) => {
    const store = await engine.store(t);
    const rows = Array.from({ length: 5 }, newDelivery) as [ReturnType<typeof newDelivery>];
    const [first, changed, gone, ...others] = rows as (typeof rows)[0][];
    assert.ok(first && changed && gone);
    const failed = { ...changed, state: 'failed' } as const;
    await store.record({ insert: { deliveries: [first, failed, ...others] } });
    const settle = createSettlements({ store, pause });
    await Promise.all(rows.map((row) => settle(delivered(row))));
    assert.equal((await store.get('deliveries', changed))?.state, 'failed');
    assert.equal(await store.get('deliveries', gone), undefined);
    for (const row of [first, ...others]) {
      assert.equal((await store.get('deliveries', row))?.state, 'delivered');
    }
  });

  test('are recorded for each tenant by itself', async (t) => {
    const store = await engine.store(t);
    const other = newUuid(random) as TenantId;
    const rows = Array.from({ length: 5 }, (_, n) =>
      n % 2 === 0 ? newDelivery() : { ...newDelivery(), tenant_id: other },
    );
    await store.record({ insert: { deliveries: rows } });
    const recorded: (readonly TenantId[])[] = [];
    const record = (work: Bookkeeping) => {
      recorded.push((work.amend?.deliveries ?? []).map(({ tenant_id }) => tenant_id));
      return store.record(work);
    };
    const settle = createSettlements({ store: { record }, pause });
    await Promise.all(rows.map((row) => settle(delivered(row))));
    assert.deepEqual(recorded, [[tenant], [other, other], [tenant, tenant]]);
    for (const row of rows) assert.equal((await store.get('deliveries', row))?.state, 'delivered');
  });

  test('fail together where the database is away, and later ones are recorded again', async (t) => {
    const store = await engine.store(t);
    const rows = Array.from({ length: 3 }, newDelivery);
    await store.record({ insert: { deliveries: rows } });
    let isAway = true;
    const record = (work: Bookkeeping) =>
      isAway ? Promise.reject(new Error('away')) : store.record(work);
    const settle = createSettlements({ store: { record }, pause });
    const ends = await Promise.allSettled(rows.map((row) => settle(delivered(row))));
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
    isAway = false;
    await Promise.all(rows.map((row) => settle(delivered(row))));
    for (const row of rows) assert.equal((await store.get('deliveries', row))?.state, 'delivered');
  });
});
