/** The steps of a commit are done in their order, each of them ends, and nothing is committed past one that fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../src/store/change.ts';
import {
  type CommitStep,
  type EndedCommit,
  withCommitSteps,
} from '../../src/store/commit/steps.ts';
import type { Store } from '../../src/store/store.ts';
import { entry, token } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const creation = (id: string): Change => ({
  insert: { tokens: [token(id)] },
  entries: [entry(id)],
});

const keyOf = (id: string) => {
  const { tenant_id, token_id } = token(id);
  return { tenant_id, token_id };
};

/** A step that says when it is done. */
const saying = (said: string[], name: string, isLater = false): CommitStep => ({
  prepare: (change) => {
    said.push(`prepare ${name}`);
    const prepared = { ...change, entries: [...change.entries, entry(name)] } as Change;
    return isLater ? Promise.resolve(prepared) : prepared;
  },
  conclude: ({ outcome }) => {
    said.push(`conclude ${name} ${outcome === undefined ? 'failed' : 'ended'}`);
  },
});

onBothEngines('commit steps', (engine) => {
  test('each step gets what the one before it has prepared, and they conclude in the opposite order', async (t) => {
    const said: string[] = [];
    const ended: EndedCommit[] = [];
    const store = withCommitSteps(await engine.store(t), [
      { conclude: (one) => void ended.push(one) },
      saying(said, 'one'),
      saying(said, 'two', true),
      saying(said, 'three'),
    ]);
    assert.deepEqual(await store.commit(creation('a')), {});
    assert.deepEqual(said, [
      'prepare one',
      'prepare two',
      'prepare three',
      'conclude three ended',
      'conclude two ended',
      'conclude one ended',
    ]);
    assert.deepEqual(
      ended.flatMap(({ change }) => change.entries.map(({ entity_id }) => entity_id)),
      ['a', 'one', 'two', 'three'],
    );
    assert.ok(await store.get('tokens', keyOf('a')));
    assert.deepEqual(await store.commit(creation('a')), { conflict: 'tokens.key' });
    assert.deepEqual(ended.at(-1)?.outcome, { conflict: 'tokens.key' });
  });

  test('what a step has recorded in another way is not committed', async (t) => {
    const said: string[] = [];
    const isLater = [false, true];
    for (const later of isLater) {
      const taking: CommitStep = {
        prepare: () => (later ? Promise.resolve(undefined) : undefined),
      };
      const store = withCommitSteps(await engine.store(t), [taking, saying(said, 'after')]);
      assert.deepEqual(await store.commit(creation('a')), {});
      assert.equal(await store.get('tokens', keyOf('a')), undefined);
    }
    assert.deepEqual(said, ['conclude after ended', 'conclude after ended']);
  });

  test('nothing is committed past a step that fails, and every step concludes', async (t) => {
    const stored = await engine.store(t);
    const fail = () => {
      throw new Error('a step');
    };
    const failing: CommitStep[] = [
      { prepare: fail },
      { prepare: () => Promise.reject(new Error('a step')) },
    ];
    for (const step of failing) {
      const said: string[] = [];
      const store = withCommitSteps(stored, [saying(said, 'before'), step, saying(said, 'after')]);
      await assert.rejects(store.commit(creation('a')), /a step/);
      assert.equal(await store.get('tokens', keyOf('a')), undefined);
      assert.deepEqual(said, ['prepare before', 'conclude after failed', 'conclude before failed']);
    }
    const said: string[] = [];
    const store = withCommitSteps(stored, [saying(said, 'before'), { conclude: fail }]);
    await assert.rejects(store.commit(creation('a')), /a step/);
    assert.deepEqual(said, ['prepare before', 'conclude before failed']);
  });

  test('a step for rows alone is done for whatever writes rows, and for no change of entries alone', async (t) => {
    const said: string[] = [];
    const rowsOnly = { ...saying(said, 'rows'), isForRows: true } as const;
    const stored = await engine.store(t);
    const store = withCommitSteps(stored, [rowsOnly]);
    await store.commit({ entries: [entry('a')] });
    assert.deepEqual(said, []);
    await store.commit(creation('a'));
    const row = token('a');
    const version = row.version + 1;
    await store.commit({ replace: { tokens: [{ ...row, version }] }, entries: [entry('a')] });
    const remove = { tokens: [{ ...row, version, data_version: 1 }] };
    await store.commit({ remove, entries: [entry('a')] });
    assert.deepEqual(
      said,
      Array.from({ length: 3 }, () => ['prepare rows', 'conclude rows ended']).flat(),
    );
    // What a step before it has added counts as well.
    const adding: CommitStep = { prepare: (change) => ({ ...creation('b'), ...change }) };
    await withCommitSteps(stored, [adding, rowsOnly]).commit({ entries: [entry('a')] });
    assert.equal(said.length, 8);
  });

  test('a caller that waits for the store is announced first', async (t) => {
    let waits = 0;
    const stored: Store = await engine.store(t);
    const store = withCommitSteps(stored, [], () => waits++);
    await store.commit(creation('a'));
    await store.get('tokens', keyOf('a'));
    assert.equal(waits, 2);
  });
});
