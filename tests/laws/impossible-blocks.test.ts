/** Blocks that the vault would never write: whoever reads the log comes to an end, and verification sees each. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { LogFinding } from '../../src/audit/finding.ts';
import { blockMax, type LogBlock, openBlock, textsOf } from '../../src/store/log-chain/block.ts';
import { textOf } from '../../src/store/log-chain/entries.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { environmentOf, runCommand } from '../support/process.ts';
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
  return { vault, tenant, like, insert, list };
}

function nameOf({ tenant_id, stream_id, seq, kind }: LogFinding): string {
  return `${tenant_id} ${stream_id} ${seq} ${kind}`;
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
    test(`with a ${column} that no number holds is named, and lists and checkpoints go on without it`, async (t) => {
      const { vault, tenant, like, insert, list } = await vaultWithBlock(t, engine);
      for (const [stream_id, value] of [
        ['zzz', inexact],
        ['yyy', `-${inexact}`],
      ] as const) {
        await insert({ ...like, stream_id });
        await engine.run(
          vault.place,
          `update logs set ${column} = ${value} where stream_id = '${stream_id}'`,
        );
      }
      const listed = await list();
      assert.equal(listed.status, 200, listed.text);
      assert.ok(listed.body.data.length > 0);
      const checkpoint = await list('/logs/checkpoint');
      assert.equal(checkpoint.status, 200, checkpoint.text);

      const seq = column === 'first_seq' ? 0 : like.first_seq;
      const named = ['yyy', 'zzz'].map((stream) => `${tenant.id} ${stream} ${seq} edited`);
      const { findings } = await verifyPlace(vault.place);
      assert.deepEqual(findings.map(nameOf), named);
      const environment = environmentOf(vault.place);
      const verified = await runCommand(['logs', 'verify', '--json'], environment);
      assert.equal(verified.code, 3, verified.stderr);
      assert.deepEqual(JSON.parse(verified.stdout).findings.map(nameOf), named);

      const exported = await runCommand(['logs', 'export'], environment);
      assert.equal(exported.code, 0, exported.stderr);
      const lines = exported.stdout
        .split('\n')
        .filter((line) => line.includes('"altered","tenant_id"'));
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        ['yyy', 'zzz'].map((stream_id) => ({
          kind: 'altered',
          tenant_id: tenant.id,
          stream_id,
          seq,
        })),
      );
      const file = join(vault.place.dataDir, 'exported.ndjson');
      writeFileSync(file, exported.stdout);
      const again = await runCommand(['logs', 'verify', '--json', '--file', file], environment);
      assert.equal(again.code, 3, again.stderr);
      assert.deepEqual(JSON.parse(again.stdout).findings.map(nameOf), named);
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

  test('of short lines that repeat a long text is refused, and not decoded further than a block is long', async (t) => {
    const { vault, like, insert, list } = await vaultWithBlock(t, engine);
    const [first] = openBlock(like) ?? [];
    assert.ok(first);
    const length = 100_000;
    const message = 'm'.repeat(length - textOf({ ...first, message: '' }, first.state).length);
    const text = textOf({ ...first, message }, first.state);
    const block = (count: number) => ({
      ...like,
      stream_id: 'zzz',
      last_seq: like.first_seq + count - 1,
      body: `${text}${`\n${length} `.repeat(count - 1)}`,
    });
    const whole = Math.floor(blockMax.characters / length);
    assert.equal(openBlock(block(whole))?.length, whole);
    const forged = block(blockMax.entries);
    assert.equal(openBlock(forged), undefined);
    assert.equal(textsOf(forged.body).length, whole + 1);
    await insert(forged);
    const refused = await list();
    assert.equal(refused.status, 500, refused.text.slice(0, 200));
    assert.match(refused.text, /A part of the audit log failed its integrity check/);
    const { findings } = await verifyPlace(vault.place);
    assert.deepEqual(
      findings.map(({ stream_id, seq }) => [stream_id, seq]),
      [['zzz', like.first_seq]],
    );
    const command = ['logs', 'verify', '--state', '--json'];
    const { code, stdout, stderr } = await runCommand(command, environmentOf(vault.place));
    assert.equal(code, 3, stderr);
    const kinds = JSON.parse(stdout).findings.map((one: LogFinding) => one.kind);
    assert.ok(kinds.includes('forged'), kinds.join());
    // The log is signed as it is, so that what is added later can be told from it.
    const checkpoint = await list('/logs/checkpoint');
    assert.match(checkpoint.body.statement, /"zzz"/);
  });
});
