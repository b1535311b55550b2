/** Many changes of one row on PostgreSQL: a statement for each, for which nobody else waits. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { TenantId } from '../../src/base/ids.ts';
import { type Change, type CommitOutcome, flatten } from '../../src/store/change.ts';
import { createLane } from '../../src/store/commit/lane.ts';
import { monotonicMs } from '../../src/store/commit/queue.ts';
import { createPostgresCommitter } from '../../src/store/postgres/commit.ts';
import {
  independentGroups,
  independentGroupsByTenant,
} from '../../src/store/postgres/independent-groups.ts';
import { creation, entry, now, removal, tenant, token } from '../support/changes.ts';
import { engineOf } from '../support/engines.ts';
import { lockTable } from '../support/locks.ts';

const engine = engineOf('postgres');
const other = randomUUID() as TenantId;

const replacement = (version: number): Change => ({
  replace: { tokens: [token('hot', { version })] },
  entries: [entry('hot', 'update')],
});

const ofOther: Change = {
  insert: { tokens: [{ ...token('cold'), tenant_id: other }] },
  entries: [{ ...entry('cold'), tenant_id: other }],
};

const changes = [...Array.from({ length: 40 }, (_, n) => replacement(n + 2)), ofOther];

/** A committer whose server lets nobody in. */
function refused(isDistributed: boolean) {
  const state = { connects: 0 };
  const connect = async () => {
    state.connects++;
    throw new Error('no route to the server');
  };
  const options = { databaseUrl: '', dataDir: '', newStreamId: randomUUID };
  return { state, committer: createPostgresCommitter(connect, options, async () => isDistributed) };
}

test('a server that cannot be reached is tried once for a group, however often a row is in it', async () => {
  for (const isDistributed of [false, true]) {
    const { state, committer } = refused(isDistributed);
    const lane = createLane(1, committer.commit);
    const outcomes = await Promise.allSettled(changes.map((change) => lane.commit(change)));
    for (const outcome of outcomes) {
      assert.ok(outcome.status === 'rejected' && outcome.reason.code === 'unavailable');
      assert.match(outcome.reason.public, /Nothing was done/);
    }
    assert.equal(state.connects, 1);
  }
});

test('what could not begin in time does not begin', async () => {
  const { state, committer } = refused(false);
  const outcomes = await committer.commit(changes.map(flatten), monotonicMs());
  assert.equal(outcomes.length, changes.length);
  for (const outcome of outcomes) assert.match(String(outcome), /waited too long/);
  assert.equal(state.connects, 0);
});

test('a change does not wait for those of a row that was changed before in its group', async (t) => {
  const place = await engine.place(t);
  const store = await engine.open(place);
  t.after(() => store.close());
  await store.commit(creation(token('hot')));
  const release = await lockTable(t, place, 'due_work in exclusive mode');
  const blocked: Change = {
    ...replacement(3),
    insert: { due_work: [{ tenant_id: tenant, work: 'checkpoint', due_at: now }] },
  };
  const order: string[] = [];
  const commit = (name: string, change: Change): Promise<CommitOutcome> =>
    store.commit(change).finally(() => order.push(name));
  const all = [
    commit('first', replacement(2)),
    commit('blocked', blocked),
    commit('other', ofOther),
  ];
  assert.deepEqual(await all[2], {});
  await release();
  assert.deepEqual(await Promise.all(all), [{}, {}, {}]);
  assert.deepEqual(order, ['first', 'other', 'blocked']);
});

test('where tables are distributed, tenants take turns with rows that come again', () => {
  const tenants = independentGroupsByTenant(changes.map(flatten)).map(
    (group) => new Set(group.flatMap(({ entries }) => entries.map(({ tenant_id }) => tenant_id))),
  );
  assert.equal(tenants.length, changes.length);
  assert.deepEqual(tenants.slice(0, 3), [new Set([tenant]), new Set([other]), new Set([tenant])]);
});

test('a row that ends and one that is made with its key are never in one statement, whichever comes first', () => {
  const made = flatten(creation(token('one')));
  const ended = flatten({
    remove: { tokens: [removal('one')] },
    entries: [entry('one', 'delete')],
  });
  const unlike = flatten(creation(token('two')));
  assert.deepEqual(independentGroups([made, unlike, ended]), [[made, unlike], [ended]]);
  assert.deepEqual(independentGroups([ended, unlike, made]), [[ended, unlike], [made]]);
});

test('the log tells a deletion and a creation of one id in the order in which they happened', async (t) => {
  const place = await engine.place(t);
  const store = await engine.open(place);
  t.after(() => store.close());
  await store.commit(creation(token('again')));
  const release = await lockTable(t, place, 'due_work in exclusive mode');
  const before: Change = {
    insert: { due_work: [{ tenant_id: tenant, work: 'checkpoint', due_at: now }] },
    entries: [entry('first', 'update')],
  };
  // Both wait for the first, and are of one group by then.
  const waiting = store.commit(before);
  const made = store.commit(creation(token('again')));
  const ended = store.commit({
    remove: { tokens: [removal('again')] },
    entries: [entry('again', 'delete')],
  });
  await release();
  await Promise.all([waiting, ended]);
  assert.equal((await made).conflict, 'tokens.key');
});
