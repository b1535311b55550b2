/** The job that signs checkpoints: when it does, what they cover, and what cannot mislead it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftCheckpoint } from '../../src/audit/checkpoints.ts';
import { type Checkpoint, openCheckpoint, statementHash } from '../../src/audit/statements.ts';
import { day, hour, parseInstant } from '../../src/base/clock.ts';
import { blockMax, openBlock } from '../../src/store/log-chain/block.ts';
import { textOf } from '../../src/store/log-chain/entries.ts';
import type { Row } from '../../src/store/tables.ts';
import { keyOf } from '../support/blocks.ts';
import { onBothEngines } from '../support/engines.ts';
import { signCheckpoints, verifyPlace } from '../support/logs.ts';
import { rowsOf, storedRows } from '../support/rows.ts';
import { literal } from '../support/sql.ts';
import { type TestTenant, tenantsOf, untilUsed } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

async function checkpointsOf(tenant: TestTenant): Promise<Row<'checkpoints'>[]> {
  return (await tenant.rows('checkpoints')).sort((one, two) => one.seq - two.seq);
}

function opened(row: Row<'checkpoints'> | undefined): Checkpoint {
  const checkpoint = row && openCheckpoint(row);
  assert.ok(checkpoint);
  return checkpoint;
}

onBothEngines('the checkpoint job', (engine) => {
  const tenants = tenantsOf(engine);

  test('signs once for a log that has grown, and not for its own entry', async () => {
    const tenant = await tenants();
    await signCheckpoints(tenant.vault);
    await signCheckpoints(tenant.vault);
    assert.equal((await checkpointsOf(tenant)).length, 1);
    await tenant.token({ type: 'token', data: 'x' });
    await signCheckpoints(tenant.vault);
    const [first, second] = await checkpointsOf(tenant);
    assert.ok(first);
    assert.equal(opened(first).previous, null);
    assert.equal(opened(second).previous, statementHash(first));
    assert.deepEqual(await tenant.logged('log_checkpoint'), ['create', 'create']);
  });

  test('together they name every stream, also one that has not grown for long', async (t) => {
    const vault = await startVault(t, engine);
    await vault.application();
    await signCheckpoints(vault);
    vault.clock.advance(3 * day);
    await vault.application();
    await signCheckpoints(vault);
    await vault.stop();
    const next = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    await next.application();
    next.clock.advance(3 * day);
    await signCheckpoints(next);
    const found = await verifyPlace(vault.place);
    assert.deepEqual(found.findings, []);
    assert.ok(found.checkpoints >= 3);
    // The traces of the checkpoints themselves, and what came in between the reads of the job.
    assert.ok(found.uncovered < found.checkpoints + 2, `${found.uncovered} entries uncovered`);
  });

  test('an entry that is committed late, or dated by a clock that is behind, is covered too', async (t) => {
    const vault = await startVault(t, engine);
    await vault.application();
    await signCheckpoints(vault);
    const [entry] = await rowsOf(engine, vault.place, 'logs');
    assert.ok(entry);
    const other = await engine.open(vault.place);
    const created_at = parseInstant(vault.clock.now() - 23 * hour);
    await other.commit({ entries: [{ ...entry, created_at }] });
    await other.close();
    assert.equal(await signCheckpoints(vault), 1);
    assert.deepEqual((await verifyPlace(vault.place)).findings, []);
  });

  test('entries of checkpoints alone are no reason for another, unless their block is larger than any', async () => {
    const { vault, id, ...tenant } = await tenants();
    const { store, tenants: all } = vault.running.vault;
    await signCheckpoints(vault);
    const owner = await all.find(id);
    const [newest] = await tenant.rows('checkpoints');
    const trace = (await storedRows(engine, vault.place, 'logs'))
      .filter(({ tenant_id }) => tenant_id === id)
      .find((one) => openBlock(one)?.every(({ entity_type }) => entity_type === 'log_checkpoint'));
    const [entry] = (trace && openBlock(trace)) ?? [];
    assert.ok(owner && newest && trace && entry);
    const draft = async () => {
      // Reads of one turn share a snapshot.
      await new Promise(setImmediate);
      return draftCheckpoint(store, { tenant: owner, newest, now: vault.clock.now() });
    };
    assert.equal(await draft(), undefined);
    const text = textOf({ ...entry, message: 'm'.repeat(blockMax.characters / 2) }, null);
    for (const [lines, isReason] of [
      [text, false],
      [`${text}\n${text.length} `, true],
    ] as const) {
      const body = literal(engine, lines);
      await engine.run(vault.place, `update logs set body = ${body} where ${keyOf(trace)}`);
      assert.equal((await draft()) !== undefined, isReason);
    }
  });

  test('several servers sign one checkpoint, not several', async (t) => {
    const one = await startVault(t, engine);
    const two = await startVault(t, engine, { place: one.place, clock: one.clock });
    for (let round = 0; round < 5; round += 1) {
      await Promise.all([one.application(), two.application()]);
      await Promise.all([signCheckpoints(one), signCheckpoints(two)]);
    }
    const { findings } = await verifyPlace(one.place);
    assert.deepEqual(findings, []);
  });

  test('what is drafted after a checkpoint has its number, whatever was signed meanwhile', async () => {
    const { vault, id, rows } = await tenants();
    const { store, tenants: all } = vault.running.vault;
    const tenant = await all.find(id);
    assert.ok(tenant);
    await signCheckpoints(vault);
    const late = await draftCheckpoint(store, {
      tenant,
      newest: undefined,
      now: vault.clock.now(),
    });
    assert.ok(late);
    assert.equal(late.seq, 1);
    const [entry] = await rows('logs');
    assert.ok(entry);
    const { conflict } = await store.commit({ insert: { checkpoints: [late] }, entries: [entry] });
    assert.match(conflict ?? '', /^checkpoints\./);
  });

  test('a checkpoint that somebody else put there hides nothing from it', async () => {
    const tenant = await tenants();
    await signCheckpoints(tenant.vault);
    const [row] = await checkpointsOf(tenant);
    assert.ok(row);
    const later = 4_000_000_000_000;
    const statement = row.statement.replace(/"created_at":\d+/, `"created_at":${later}`);
    await engine.run(
      tenant.vault.place,
      `update checkpoints set created_at = ${later}, statement = '${statement}'
        where tenant_id = '${tenant.id}'`,
    );
    await tenant.token({ type: 'token', data: 'x' });
    await untilUsed(tenant, tenant.key);
    await signCheckpoints(tenant.vault);
    const second = opened((await checkpointsOf(tenant))[1]);
    const streams = new Set((await tenant.rows('logs')).map((entry) => entry.stream_id));
    assert.deepEqual(new Set(second.heads.map(([stream]) => stream)), streams);
  });
});
