/** Blocks that the vault would never write: whoever reads the log comes to an end, and verification sees each. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { blockMax, type LogBlock, openBlock, textsOf } from '../../src/lib/log-chain/block.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { storedRows } from '../support/rows.ts';
import { insertion } from '../support/sql.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

/** Beyond what a number of JavaScript holds exactly: rounded, it is the place before. */
const inexact = '9007199254740993';

async function vaultWithBlock(t: TestContext, engine: Engine) {
  const vault = await startVault(t, engine);
  const tenant = await newTenant(vault);
  const blocks = await storedRows(engine, vault.place, 'logs');
  const like = blocks.find(({ tenant_id }) => tenant_id === tenant.id);
  assert.ok(like);
  const insert = (block: LogBlock) =>
    engine.run(vault.place, insertion(engine, 'logs', block as never));
  const list = (path = '/logs') => tenant.send('GET', path, { key: tenant.managementKey });
  return { vault, like, insert, list };
}

onBothEngines('a block that the vault would never write', (engine) => {
  test('is found in whatever place it stands: nothing is listed and not verified', async (t) => {
    const { vault, like, insert } = await vaultWithBlock(t, engine);
    const streams = ['', ' ', randomUUID(), 'zzz'];
    for (const stream_id of streams) {
      for (const first_seq of [Number.MIN_SAFE_INTEGER, -1, 0, 2]) {
        await insert({ ...like, stream_id, first_seq, last_seq: first_seq });
      }
    }
    const { findings } = await verifyPlace(vault.place);
    assert.deepEqual(
      findings.map(({ stream_id, seq, kind }) => `${stream_id} ${seq} ${kind}`).toSorted(),
      streams.map((stream) => `${stream} ${Number.MIN_SAFE_INTEGER} inserted`).toSorted(),
    );
  });

  for (const column of ['first_seq', 'last_seq', 'first_at', 'last_at']) {
    test(`with a ${column} that no number holds makes verification fail, and not go on for ever`, async (t) => {
      const { vault, like, insert, list } = await vaultWithBlock(t, engine);
      await insert({ ...like, stream_id: 'zzz' });
      await engine.run(
        vault.place,
        `update logs set ${column} = ${inexact} where stream_id = 'zzz'`,
      );
      await assert.rejects(verifyPlace(vault.place), RangeError);
      assert.equal((await list()).status, 503);
    });
  }

  test('with more entries than a block may have is not decoded further than that', async (t) => {
    const { vault, like, insert, list } = await vaultWithBlock(t, engine);
    const [text = ''] = textsOf(like.body);
    const bodyWith = (count: number) => `${text}${`\n${text.length} `.repeat(count - 1)}`;
    for (const [count, decoded] of [
      [blockMax.entries, blockMax.entries],
      [blockMax.entries + 1, undefined],
      [200_000, undefined],
    ]) {
      assert.ok(count);
      assert.equal(openBlock({ ...like, body: bodyWith(count) })?.length, decoded);
    }
    const body = bodyWith(200_000);
    assert.equal(textsOf(body).length, blockMax.entries + 1);
    await insert({ ...like, stream_id: 'zzz', body, last_seq: 200_000 });
    const { findings } = await verifyPlace(vault.place);
    assert.deepEqual(
      findings.map(({ stream_id }) => stream_id),
      ['zzz'],
    );
    assert.equal((await list()).status, 500);
  });
});
