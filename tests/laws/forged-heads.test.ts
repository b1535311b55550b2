/** Who writes to the database, and puts a block where a stream of the log goes on, stops nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBlock } from '../../src/store/log-chain/block.ts';
import { onBothEngines } from '../support/engines.ts';
import { verifyPlace } from '../support/logs.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { storedRows } from '../support/rows.ts';
import { insertion } from '../support/sql.ts';
import { newTenant, untilUsed } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('a block that was put at the head of every stream of a tenant', (engine) => {
  test('fails no commit of anybody, and is named by verification', async (t) => {
    const vault = await startVault(t, engine);
    const [tenant, other] = [await newTenant(vault), await newTenant(vault)];
    for (const one of [tenant, other]) {
      await one.token({ id: 'before', type: 'token', data: 1 });
      await untilUsed(one, one.key);
    }
    const blocks = (await storedRows(engine, vault.place, 'logs')).filter(
      ({ tenant_id }) => tenant_id === tenant.id,
    );
    const heads = new Map(
      blocks
        .toSorted((one, two) => one.first_seq - two.first_seq)
        .map((block) => [block.stream_id, block]),
    );
    for (const head of heads.values()) {
      const seq = head.last_seq + 1;
      const last_seq = seq + (openBlock(head)?.length ?? 0) - 1;
      const forged = { ...head, first_seq: seq, last_seq };
      await engine.run(vault.place, insertion(engine, 'logs', forged));
    }
    const streams = new Set(heads.keys());
    for (const round of [1, 2]) {
      const created = await Promise.all(
        Array.from({ length: 12 }, (_, at) =>
          [tenant, other].map((one) =>
            one.send('POST', '/tokens', {
              body: { id: `after-${round}-${at}`, type: 'token', data: 1 },
            }),
          ),
        ).flat(),
      );
      assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([201]));
    }
    const entries = await tenant.rows('logs');
    const after = entries.filter(({ entity_id }) => entity_id.startsWith('after-'));
    assert.equal(after.length, 24);
    assert.ok(after.every(({ stream_id }) => !streams.has(stream_id)));

    const expected = [...heads.values()].map(({ stream_id, last_seq }) => [
      stream_id,
      last_seq + 1,
    ]);
    const { findings } = await verifyPlace(vault.place);
    assert.deepEqual(
      findings.map(({ stream_id, seq }) => [stream_id, seq]).toSorted(),
      expected.toSorted(),
    );
    const command = ['logs', 'verify', '--state', '--json'];
    const { code, stdout } = await runCommand(command, environmentOf(vault.place));
    assert.equal(code, 3);
    const forged = JSON.parse(stdout).findings.filter(
      (one: { kind: string }) => one.kind === 'forged',
    );
    assert.equal(
      new Set(forged.map((one: { stream_id: string }) => one.stream_id)).size,
      heads.size,
    );
  });
});
