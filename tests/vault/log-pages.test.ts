/** Logs longer than a page: every entry is verified, those at the edges of pages and of streams too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pageRowsMax } from '../../src/vault/logs/read.ts';
import { entry } from '../support/changes.ts';
import { type Engine, onBothEngines, type Place } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';

/** Entries of one change, and so of one stream, by a store that is closed again. */
async function log(engine: Engine, place: Place, count: number): Promise<void> {
  const store = await engine.open(place);
  const others = Array.from({ length: count - 1 }, (_, n) => entry(`t-${n}`));
  await store.commit({ entries: [entry('first'), ...others] });
  await store.close();
}

onBothEngines('a log of several pages', (engine) => {
  for (const beyond of [-1, 0, 1]) {
    test(`verifies with all of its entries: ${2 * pageRowsMax + beyond} in two streams`, async (t) => {
      const place = await engine.place(t);
      await log(engine, place, pageRowsMax - 1);
      await log(engine, place, pageRowsMax + 1 + beyond);
      const { entries, streams, findings } = await verifyPlace(place);
      assert.deepEqual(
        { entries, streams, findings },
        {
          entries: 2 * pageRowsMax + beyond,
          streams: 2,
          findings: [],
        },
      );
    });
  }

  test('an entry that is edited at the edge of a page is found', async (t) => {
    const place = await engine.place(t);
    await log(engine, place, pageRowsMax + 1);
    for (const seq of [pageRowsMax + 1, pageRowsMax]) {
      await engine.run(place, `update logs set message = 'Token deleted' where seq = ${seq}`);
      const { findings } = await verifyPlace(place);
      assert.deepEqual(
        findings.map((finding) => [finding.kind, finding.seq]),
        [['edited', seq]],
      );
    }
  });
});
