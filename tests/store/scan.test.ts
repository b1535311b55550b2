/** Long reads: they see what was committed, and nobody waits for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Query } from '../../src/store/store.ts';
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

onBothEngines('a scan', (engine) => {
  test('answers as a select does', async (t) => {
    const store = await engine.store(t);
    const query = counting(1000);
    assert.deepEqual(
      (await store.scan(query)).map(({ count }) => count),
      (await store.select(query)).map(({ count }) => count),
    );
  });

  test('lets other reads pass', async (t) => {
    const store = await engine.store(t);
    // A new connection to PostgreSQL may take as long as the scan.
    await Promise.all([store.select(counting(10)), store.select(counting(10))]);
    const order: string[] = [];
    const long = store.scan(counting(400_000)).then(() => order.push('scan'));
    for (let index = 0; index < 5; index += 1) {
      await store.select(counting(10)).then(() => order.push('select'));
    }
    await long;
    assert.equal(order.at(-1), 'scan');
  });

  test('that the engine refuses is unavailable, and the next one is answered', async (t) => {
    const store = await engine.store(t);
    await assert.rejects(store.scan(nonsense), { code: 'unavailable' });
    assert.equal((await store.scan(counting(7)))[0]?.count, 7);
  });

  test('that is under way when the store closes does not keep it open', async (t) => {
    const store = await engine.open(await engine.place(t));
    const scanned = store.scan(counting(50_000)).catch((error: unknown) => error);
    await store.close();
    assert.ok(await scanned);
  });
});
