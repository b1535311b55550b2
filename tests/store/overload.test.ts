/** More than the engine can do: what waits is bounded, the rest is told at once, and nothing is lost. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import type { CommitOutcome, FlatChange } from '../../src/store/change.ts';
import { createLane } from '../../src/store/commit/lane.ts';
import { groupMax, waitingMax, waitMsMax } from '../../src/store/commit/queue.ts';
import { queriesWaitingMax } from '../../src/store/postgres/engine.ts';
import { scansWaitingMax } from '../../src/store/scan-turns.ts';
import { creation, entry, token } from '../support/changes.ts';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { holdWrites, lockTable } from '../support/locks.ts';

const codesOf = (settled: readonly PromiseSettledResult<CommitOutcome>[]) => {
  const codes: Record<string, number> = {};
  for (const result of settled) {
    const code = result.status === 'rejected' ? result.reason.code : 'done';
    codes[code] = (codes[code] ?? 0) + 1;
  }
  return codes;
};

/** A lane of width one and the sizes of the groups that went through it. */
function recordedLane() {
  const groups: (readonly FlatChange[])[] = [];
  const lane = createLane(1, async (changes) => {
    groups.push(changes);
    return changes.map(() => ({}));
  });
  return { lane, groups };
}

const withTokens = (id: string, count: number, data = new Uint8Array(1)) => ({
  insert: { tokens: Array.from({ length: count }, (_, n) => token(`${id}-${n}`, { data })) },
  entries: [entry(id)] as const,
});

test('a group runs in the context of none of its callers, also when it follows another', async () => {
  const callers = new AsyncLocalStorage<string>();
  const contexts: (string | undefined)[] = [];
  const lane = createLane(1, async (changes) => {
    contexts.push(callers.getStore());
    await Promise.resolve();
    return changes.map(() => ({}));
  });
  const commitAs = (name: string) =>
    callers.run(name, async () => {
      await lane.commit(creation(token(name)));
      assert.equal(callers.getStore(), name);
    });
  await Promise.all([commitAs('first'), commitAs('second')]);
  const third = commitAs('third');
  await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([third, commitAs('fourth')]);
  assert.ok(contexts.length >= 2);
  assert.deepEqual(new Set(contexts), new Set([undefined]));
});

test('a group is closed at a number of changes', async () => {
  const { lane, groups } = recordedLane();
  await Promise.all(
    Array.from({ length: groupMax.changes + 1 }, (_, n) => lane.commit(creation(token(`${n}`)))),
  );
  assert.deepEqual(
    groups.map((group) => group.length),
    [groupMax.changes, 1],
  );
});

test('a group is closed at a number of rows', async () => {
  const { lane, groups } = recordedLane();
  const half = groupMax.rows / 2 - 1; // and its entry
  const sizes = [half, half, half, half + 1, half, 3 * groupMax.rows, 1];
  await Promise.all(sizes.map((count, n) => lane.commit(withTokens(`${n}`, count))));
  assert.deepEqual(
    groups.map((group) => group.length),
    [2, 1, 1, 1, 1, 1],
  );
});

test('a group is closed at a number of bytes', async () => {
  const { lane, groups } = recordedLane();
  const third = new Uint8Array(groupMax.bytes / 3);
  const whole = new Uint8Array(2 * groupMax.bytes);
  const sizes = [third, third, third, whole, third];
  await Promise.all(sizes.map((data, n) => lane.commit(withTokens(`${n}`, 1, data))));
  assert.deepEqual(
    groups.map((group) => group.length),
    [2, 1, 1, 1],
  );
});

test('the changes that wait are bounded in bytes', async () => {
  const { lane } = recordedLane();
  const eighth = new Uint8Array(waitingMax.bytes / 8);
  const settled = await Promise.allSettled(
    Array.from({ length: 20 }, (_, n) => lane.commit(withTokens(`${n}`, 1, eighth))),
  );
  assert.deepEqual(codesOf(settled), { done: 7, overloaded: 13 });
});

test('a single change is accepted, however large', async () => {
  const { lane } = recordedLane();
  const huge = new Uint8Array(waitingMax.bytes + 1);
  assert.deepEqual(await lane.commit(withTokens('a', 1, huge)), {});
});

onBothEngines('changes that wait', (engine) => {
  test('are bounded in number and in time, and what fails is not done', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    t.after(() => store.close());
    await store.commit(creation(token('first')));
    const release = await holdWrites(t, engine, place);
    const extra = 50;
    const begun = performance.now();
    const commits = Array.from({ length: waitingMax.changes + extra }, (_, n) =>
      store.commit(creation(token(`t-${n}`))),
    );
    const all = Promise.allSettled(commits);
    const refused = await Promise.allSettled(commits.slice(waitingMax.changes));
    assert.deepEqual(codesOf(refused), { overloaded: extra });
    assert.ok(performance.now() - begun < waitMsMax, 'they are refused at once');
    const [refusal] = refused;
    assert.ok(refusal?.status === 'rejected');
    assert.deepEqual(refusal.reason.headers, { 'retry-after': '1' });

    await assert.rejects(commits[waitingMax.changes - 1] ?? Promise.resolve(), {
      code: 'unavailable',
    });
    assert.ok(performance.now() - begun < 2 * waitMsMax, 'nobody waits for those before');
    await release();
    const settled = codesOf(await all);
    assert.deepEqual(await store.commit(creation(token('last'))), {});
    const [row] = await engine.run(place, 'select count(*) as n from tokens');
    assert.equal(Number(row?.['n']), 2 + (settled['done'] ?? 0));
    assert.ok((settled['unavailable'] ?? 0) >= waitingMax.changes - 2 * groupMax.changes);
  });
});

test('queries that wait for PostgreSQL are bounded, and those accepted are answered', async (t) => {
  const engine = engineOf('postgres');
  const place = await engine.place(t);
  const store = await engine.open(place);
  t.after(() => store.close());
  const release = await lockTable(t, place, 'tokens in access exclusive mode');
  const count = queriesWaitingMax + 50;
  const reads = Array.from({ length: count }, () =>
    store.select((db) => db.selectFrom('tokens').select('token_id')),
  );
  const all = Promise.allSettled(reads);
  await assert.rejects(reads.at(-1) ?? Promise.resolve(), { code: 'overloaded' });
  await release();
  const settled = await all;
  const answered = settled.filter((result) => result.status === 'fulfilled').length;
  assert.ok(answered >= queriesWaitingMax && answered < count, `${answered} answered`);
});

test('scans that wait for the embedded engine are bounded, and those accepted are answered', async (t) => {
  const store = await engineOf('sqlite').store(t);
  const settled = await Promise.allSettled(
    Array.from({ length: scansWaitingMax + 50 }, () =>
      store.scan((db) => db.selectFrom('tokens').select('token_id'), 'vault'),
    ),
  );
  const answered = settled.filter((result) => result.status === 'fulfilled').length;
  assert.equal(answered, scansWaitingMax + 1, 'those that wait, and the one under way');
});
