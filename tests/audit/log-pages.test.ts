/** Logs longer than a page: every entry is verified, those at the edges of pages, blocks and streams too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageBlocksMax } from '../../src/audit/read.ts';
import { instantAfter } from '../../src/base/clock.ts';
import { blockMax } from '../../src/store/log-chain/block.ts';
import { editEntry } from '../support/blocks.ts';
import { entry } from '../support/changes.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { storedRows } from '../support/rows.ts';

/** Blocks of one change, and so of one stream, by a store that is closed again. */
async function log(engine: Engine, place: Place, blocks: number): Promise<void> {
  const store = await engine.open(place);
  const at = (n: number) => instantAfter(entry('x').created_at, n * (blockMax.spanMs + 1));
  const others = Array.from({ length: blocks - 1 }, (_, n) => ({
    ...entry(`t-${n}`),
    created_at: at(n + 1),
  }));
  await store.commit({ entries: [entry('first'), ...others] });
  await store.close();
}

onBothEngines('a log of several pages', (engine) => {
  for (const beyond of [-1, 0, 1]) {
    test(`verifies with all of its entries: ${2 * pageBlocksMax + beyond} in two streams`, async (t) => {
      const place = await engine.place(t);
      await log(engine, place, pageBlocksMax - 1);
      await log(engine, place, pageBlocksMax + 1 + beyond);
      const { entries, streams, findings } = await verifyPlace(place);
      assert.deepEqual(
        { entries, streams, findings },
        {
          entries: 2 * pageBlocksMax + beyond,
          streams: 2,
          findings: [],
        },
      );
    });
  }

  test('an entry that is edited at the edge of a page is found', async (t) => {
    const place = await engine.place(t);
    await log(engine, place, pageBlocksMax + 1);
    const blocks = await storedRows(engine, place, 'logs');
    for (const seq of [pageBlocksMax + 1, pageBlocksMax]) {
      const block = blocks.find(({ first_seq }) => first_seq === seq);
      assert.ok(block);
      await editEntry(engine, place, block, { seq, change: { message: 'Token deleted' } });
      const { findings } = await verifyPlace(place);
      assert.deepEqual(
        findings.map((finding) => [finding.kind, finding.seq]),
        [['edited', seq]],
      );
    }
  });

  test('an entry that is edited within a block is found, and the block is named', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    const many = Array.from({ length: 9 }, (_, n) => entry(`t-${n}`));
    await store.commit({ entries: [entry('first')] });
    await store.commit({ entries: [entry('second'), ...many] });
    await store.close();
    const [, block] = await storedRows(engine, place, 'logs');
    assert.ok(block);
    await editEntry(engine, place, block, { seq: 7, change: { message: 'Token deleted' } });
    const [finding] = (await verifyPlace(place)).findings;
    assert.deepEqual([finding?.kind, finding?.seq], ['edited', 2]);
    assert.match(finding?.message ?? '', /^one or more of the entries 2 to 11, /);
  });
});
