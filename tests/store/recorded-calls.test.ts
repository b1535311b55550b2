/** What a file of tests asked of one engine is compared on both: a difference between them is found. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import type { Store } from '../../src/store/store.ts';
import type { Unproven } from '../../src/store/stored-row.ts';
import { creation, removal, token } from '../support/changes.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { createRecordings } from '../support/recorded-calls.ts';

async function recordedBy(t: TestContext, engine: Engine, use: (store: Store) => Promise<unknown>) {
  const { open, replay } = createRecordings();
  const store = await open({ ...(await engine.migrated(t)), newStreamId: randomUUID });
  await use(store);
  await store.close();
  return replay;
}

onBothEngines('recorded calls', (engine) => {
  test('that mean the same to both engines have equal results', async (t) => {
    const replay = await recordedBy(t, engine, async (store) => {
      await store.commit(creation(token('a')));
      assert.deepEqual(await store.commit(creation(token('a'))), { conflict: 'tokens.key' });
      await store.select((db) => db.selectFrom('tokens').selectAll().$castTo<Unproven<'tokens'>>());
      await store.commit({
        remove: { tokens: [removal('a')] },
        entries: creation(token('a')).entries,
      });
    });
    await replay();
  });

  test('a query that means something else to one engine is found', async (t) => {
    // To the embedded engine a capital letter is like a small one.
    const replay = await recordedBy(t, engine, async (store) => {
      await store.commit(creation(token('A')));
      const isLike = sql<boolean>`'A' like 'a'`;
      await store.select((db) => db.selectFrom('tokens').select('token_id').where(isLike));
    });
    await assert.rejects(replay(), /on PostgreSQL and embedded/);
  });
});
