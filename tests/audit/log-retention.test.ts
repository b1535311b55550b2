/** Log retention on the disk: old entries go, what remains still verifies, and what was altered stays. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { LogFinding } from '../../src/audit/finding.ts';
import { removedEntriesMax } from '../../src/audit/retention.ts';
import { day, parseInstant } from '../../src/base/clock.ts';
import { systemEntry } from '../../src/rules/log-entries.ts';
import type { LogBlock } from '../../src/store/log-chain/block.ts';
import { editEntry, forgedBlocks, keyOf } from '../support/blocks.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import {
  mixedTraffic,
  readParts,
  signCheckpoints,
  verifyParts,
  verifyPlace,
} from '../support/logs.ts';
import { rowsOf, storedRows } from '../support/rows.ts';
import { insertion } from '../support/sql.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const job = 'remove old logs';

/** A vault whose log begins 500 days ago, with checkpoints, and has gone on since. */
async function agedVault(t: TestContext, engine: Engine): Promise<TestVault> {
  const vault = await startVault(t, engine);
  // Each with keys of its own: a refusal that repeats is counted, and would be written 500 days later.
  await mixedTraffic(vault, 1);
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  vault.clock.advance(500 * day);
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  return vault;
}

/** The log, and the first entry of a stream that has lost its beginning and goes on after that entry. */
async function whatIsLeft({ place }: TestVault, engine: Engine) {
  const { statements, entries } = await readParts(place);
  const removals = await rowsOf(engine, place, 'log_removals');
  // Where nothing follows, an end is missing instead, which is another finding.
  const next = entries.find(({ tenant_id, stream_id, seq }) => {
    const isOfStream = (one: { readonly tenant_id: string; readonly stream_id: string }) =>
      one.tenant_id === tenant_id && one.stream_id === stream_id;
    const removed = removals.find(isOfStream);
    const goesOn = entries.some((one) => isOfStream(one) && one.seq > seq);
    return removed !== undefined && removed.to_seq + 1 === seq && goesOn;
  });
  return { statements, entries, next };
}

onBothEngines('the job that removes old log entries', (engine) => {
  test('removes what is older than the quota and nothing else, and the rest still verifies', async (t) => {
    const vault = await agedVault(t, engine);
    const before = await readParts(vault.place);
    const cutoff = vault.clock.now() - 400 * day;
    const old = before.entries.filter((entry) => entry.created_at < cutoff);
    assert.ok(old.length > 10);
    assert.equal(await runJob(vault, job), old.length);
    const after = await readParts(vault.place);
    const kept = before.entries.filter((entry) => entry.created_at >= cutoff);
    const hashes = new Set(after.entries.map(({ hash }) => hash));
    for (const entry of kept) assert.ok(hashes.has(entry.hash));
    for (const entry of old) assert.ok(!hashes.has(entry.hash));
    const { findings, removed } = verifyParts(after);
    assert.deepEqual(findings, []);
    assert.equal(removed, old.length);
    assert.equal(await runJob(vault, job), 0);
  });

  test('goes on where it stopped, in batches, and of several servers one removes', async (t) => {
    const vault = await startVault(t, engine);
    const { store } = vault.running.vault;
    const [entry] = await rowsOf(engine, vault.place, 'logs');
    assert.ok(entry);
    const many = Array.from({ length: removedEntriesMax + 50 }, () => entry);
    await store.commit({ entries: [entry, ...many] });
    await signCheckpoints(vault);
    vault.clock.advance(500 * day);
    const removed = await Promise.all([runJob(vault, job), runJob(vault, job)]);
    await runJob(vault, job);
    assert.ok(removed.some((count) => count > 0));
    assert.deepEqual((await verifyPlace(vault.place)).findings, []);
    vault.clock.advance(500 * day);
    await runJob(vault, job);
    const { findings, entries } = await verifyPlace(vault.place);
    assert.deepEqual(findings, []);
    assert.ok(entries < 10, 'only what tells of the removals');
  });

  test('a removal that nobody signed, or that says something else, is found', async (t) => {
    const vault = await agedVault(t, engine);
    await runJob(vault, job);
    let left = await whatIsLeft(vault, engine);
    // Each of two connections writes a stream of its own, and which one commits next is chance.
    while (left.next === undefined) {
      vault.clock.advance(500 * day);
      await mixedTraffic(vault, 1);
      await signCheckpoints(vault);
      await runJob(vault, job);
      left = await whatIsLeft(vault, engine);
    }
    const { statements, entries, next } = left;
    const ofStream = (findings: readonly LogFinding[]) =>
      findings.find(
        ({ tenant_id, stream_id }) => tenant_id === next.tenant_id && stream_id === next.stream_id,
      );
    const without = statements.filter(({ kind }) => kind !== 'removal');
    const gap = ofStream(verifyParts({ statements: without, entries }).findings);
    assert.equal(gap?.kind, 'deleted');
    assert.equal(gap.seq, 1);
    const altered = statements.map((record) =>
      record.kind === 'removal'
        ? {
            ...record,
            signed: {
              ...record.signed,
              statement: record.signed.statement.replace(/"to_seq":/, '"to_seq":1'),
            },
          }
        : record,
    );
    assert.equal(verifyParts({ statements: altered, entries }).findings[0]?.kind, 'forged');
    // Of what is left of the stream, the first entry goes as well.
    const fewer = entries.filter((entry) => entry !== next);
    const deleted = ofStream(verifyParts({ statements, entries: fewer }).findings);
    assert.equal(deleted?.kind, 'deleted');
    assert.equal(deleted.seq, next.seq);
  });

  test('an entry made to look old is not removed: the job fails, and says which stream', async (t) => {
    const vault = await agedVault(t, engine);
    const cutoff = vault.clock.now() - 400 * day;
    const blocks = await storedRows(engine, vault.place, 'logs');
    const [block] = blocks.filter(({ last_at, stream_id, first_seq }) => {
      const before = blocks.find(
        (one) => one.stream_id === stream_id && one.last_seq + 1 === first_seq,
      );
      return last_at >= cutoff && before !== undefined && before.last_at < cutoff;
    });
    assert.ok(block);
    const { stream_id } = block;
    const old = { created_at: parseInstant(1) };
    let edited = block;
    for (let at = block.first_seq; at <= block.last_seq; at += 1) {
      edited = await editEntry(engine, vault.place, edited, { seq: at, change: old });
    }
    const times = 'first_at = 1, last_at = 1';
    await engine.run(vault.place, `update logs set ${times} where ${keyOf(block)}`);
    await assert.rejects(runJob(vault, job), {
      code: 'integrity',
      message: new RegExp(`stream ${stream_id}`),
    });
    const left = await rowsOf(engine, vault.place, 'logs');
    assert.ok(left.some((row) => row.stream_id === stream_id && row.seq === block.first_seq));
    const found = (await verifyPlace(vault.place)).findings.find(
      (one) => one.stream_id === stream_id,
    );
    assert.equal(found?.kind, 'edited');
    assert.equal(found?.seq, block.first_seq);
  });

  test('blocks that were put in the place of younger ones stay: nobody signs that those are gone', async (t) => {
    const vault = await startVault(t, engine);
    await mixedTraffic(vault, 1);
    await signCheckpoints(vault);
    const blocks = await storedRows(engine, vault.place, 'logs');
    const [{ tenant_id, stream_id } = assert.fail()] = blocks;
    const own = (one: LogBlock) => one.stream_id === stream_id && one.tenant_id === tenant_id;
    const count = Math.max(...blocks.filter(own).map(({ last_seq }) => last_seq));
    const created_at = parseInstant(vault.clock.now() - 500 * day);
    const fact = { entity: 'log', id: tenant_id, operation: 'read' } as const;
    const entry = { ...systemEntry({ tenant: tenant_id, at: created_at, ...fact }), state: null };
    // One more than there were: the last checkpoint speaks of none of them then.
    const old = forgedBlocks(stream_id, Array(count + 1).fill(entry));
    await engine.run(
      vault.place,
      `delete from logs where tenant_id = '${tenant_id}' and stream_id = '${stream_id}'`,
    );
    for (const block of old) await engine.run(vault.place, insertion(engine, 'logs', block));
    const work = { tenant_id, work: 'old logs', due_at: parseInstant(1) } as const;
    await engine.run(vault.place, insertion(engine, 'due_work', work));
    await assert.rejects(runJob(vault, job), {
      code: 'integrity',
      message: new RegExp(`stream ${stream_id}`),
    });
    assert.deepEqual(await rowsOf(engine, vault.place, 'log_removals'), []);
    const { findings } = await verifyPlace(vault.place);
    assert.ok(findings.some((one) => one.stream_id === stream_id));
  });
});
