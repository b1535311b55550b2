/** Long reads: they see what was committed, and nobody waits for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { newUuid, type TenantId } from '../../src/base/ids.ts';
import { pooledRandom } from '../../src/base/random.ts';
import type { Query, ScanPayer } from '../../src/store/store.ts';
import { onBothEngines } from '../support/engines.ts';

const counting =
  (to: number): Query<{ count: number }> =>
  (db) => ({
    compile: () =>
      sql<{ count: number }>`with recursive n(i) as (
        select 1 union all select i + 1 from n where i < ${to}
      ) select count(*) as count from n`.compile(db),
  });

const nonsense: Query<unknown> = (db) => ({
  compile: () => sql`select nothing from nowhere`.compile(db),
});

const newPayer = (): ScanPayer => ({ tenant: newUuid<TenantId>(pooledRandom()), name: 'key' });

onBothEngines('a scan', (engine) => {
  test('answers as a select does', async (t) => {
    const store = await engine.store(t);
    const query = counting(1000);
    assert.deepEqual(
      (await store.scan(query, 'vault')).map(({ count }) => count),
      (await store.select(query)).map(({ count }) => count),
    );
  });

  test('lets other reads pass', async (t) => {
    const store = await engine.store(t);
    // A new connection to PostgreSQL may take as long as the scan.
    await Promise.all([store.select(counting(10)), store.select(counting(10))]);
    const order: string[] = [];
    const payer = newPayer();
    const long = Promise.all(
      Array.from({ length: 12 }, () =>
        store.scan(counting(400_000), payer).then(() => order.push('scan')),
      ),
    );
    for (let index = 0; index < 5; index += 1) {
      await store.select(counting(10)).then(() => order.push('select'));
    }
    await long;
    assert.equal(order.at(-1), 'scan');
    assert.ok(order.lastIndexOf('select') < 10, 'reads wait for no scan');
  });

  test('of one caller is behind the first few of another, however many of the other wait', async (t) => {
    const store = await engine.store(t);
    const [busy, other] = [newPayer(), newPayer()];
    const ended: string[] = [];
    const noted = (payer: ScanPayer, name: string) =>
      store.scan(counting(100_000), payer).then(() => ended.push(name));
    const many = Array.from({ length: 40 }, () => noted(busy, 'busy'));
    const own = [noted(other, 'other'), noted('vault', 'vault')];
    await Promise.all([...many, ...own]);
    for (const name of ['other', 'vault']) {
      assert.ok(ended.indexOf(name) < 20, `${name} ended as number ${ended.indexOf(name)}`);
    }
  });

  test('that comes when many of its caller wait is refused, and those of others are not', async (t) => {
    const store = await engine.store(t);
    const [busy, other] = [newPayer(), newPayer()];
    const many = Array.from({ length: 200 }, () => store.scan(counting(1_000), busy));
    const own = store.scan(counting(10), other);
    const refused = (await Promise.allSettled(many)).filter((one) => one.status === 'rejected');
    assert.ok(refused.length > 100, `${refused.length} were refused`);
    assert.ok(refused.every(({ reason }) => reason.code === 'too_many_requests'));
    assert.equal((await own)[0]?.count, 10);
  });

  test('that the engine refuses is unavailable, and the next one is answered', async (t) => {
    const store = await engine.store(t);
    await assert.rejects(store.scan(nonsense, 'vault'), { code: 'unavailable' });
    assert.equal((await store.scan(counting(7), 'vault'))[0]?.count, 7);
  });

  test('that is under way when the store closes does not keep it open', async (t) => {
    const store = await engine.open(await engine.place(t));
    const scanned = store.scan(counting(50_000), 'vault').catch((error: unknown) => error);
    await store.close();
    assert.ok(await scanned);
  });
});
