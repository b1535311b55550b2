/** The store's contract, kept by both engines alike. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TokenId } from '../../src/base/ids.ts';
import type { Change } from '../../src/store/change.ts';
import { entryHash, streamSeed, textOf } from '../../src/store/log-chain/entries.ts';
import { schemaVersion } from '../../src/store/migrations/migrate.ts';
import type { Store } from '../../src/store/store.ts';
import { unverifiedColumns } from '../../src/store/stored-row.ts';
import { entriesIn } from '../support/blocks.ts';
import { creation, entry, removal, tenant, termOf, token } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';

const read = (store: Store, id: string) =>
  store.get('tokens', { tenant_id: tenant, token_id: id as TokenId });

const logs = entriesIn;

onBothEngines('the store', (engine) => {
  test('a committed row reads back exactly, bytes and all', async (t) => {
    const store = await engine.store(t);
    assert.deepEqual(await store.commit(creation(token('a'))), {});
    const row = await read(store, 'a');
    assert.ok(row);
    const columns = unverifiedColumns(row);
    const plain = { ...columns, data: new Uint8Array(columns.data) };
    assert.deepEqual(plain, token('a'));
    assert.equal(await read(store, 'missing'), undefined);
  });

  test('a key that is taken is a conflict that names it, and nothing of the change is done', async (t) => {
    const store = await engine.store(t);
    await store.commit(creation(token('a')));
    const outcome = await store.commit({
      insert: { tokens: [token('b'), token('a')] },
      entries: [entry('b')],
    });
    assert.deepEqual(outcome, { conflict: 'tokens.key' });
    assert.equal(await read(store, 'b'), undefined);
    assert.equal((await logs(store)).length, 1);
  });

  test('one token at most answers for a fingerprint; others may share it', async (t) => {
    const store = await engine.store(t);
    const claim = { fingerprint: 'f', deduplicated: 1 } as const;
    await store.commit(creation(token('a', claim)));
    await store.commit(creation(token('b', { fingerprint: 'f' })));
    const outcome = await store.commit(creation(token('c', claim)));
    assert.deepEqual(outcome, { conflict: 'tokens.fingerprint' });
    assert.ok(await read(store, 'b'));
    assert.equal(await read(store, 'c'), undefined);
  });

  test('of concurrent creates of one key exactly one succeeds, and each keeps its own answer', async (t) => {
    const store = await engine.store(t);
    const changes = Array.from({ length: 60 }, (_, index) =>
      creation(token(index % 3 === 0 ? 'same' : `own-${index}`)),
    );
    const outcomes = await Promise.all(changes.map((change) => store.commit(change)));
    const same = outcomes.filter((_, index) => index % 3 === 0);
    assert.equal(same.filter((outcome) => outcome.conflict === undefined).length, 1);
    assert.ok(
      outcomes.every((outcome, index) => index % 3 === 0 || outcome.conflict === undefined),
    );
    assert.equal((await logs(store)).length, 41);
  });

  test('a replacement needs the version before it: of concurrent ones exactly one succeeds', async (t) => {
    const store = await engine.store(t);
    await store.commit(creation(token('a')));
    const replacement = (type: string): Change => ({
      replace: { tokens: [token('a', { version: 2, type })] },
      entries: [entry('a', 'update')],
    });
    const outcomes = await Promise.all(
      ['x', 'y', 'z'].map((type) => store.commit(replacement(type))),
    );
    assert.equal(outcomes.filter((outcome) => outcome.conflict === undefined).length, 1);
    assert.equal(outcomes.filter((outcome) => outcome.conflict === 'tokens.version').length, 2);
    assert.equal((await read(store, 'a'))?.version, 2);
    assert.equal((await logs(store)).length, 2);
  });

  test('a removal needs the version it names, and frees the key for a later change', async (t) => {
    const store = await engine.store(t);
    await store.commit(creation(token('a')));
    const deletion = (version: number): Change => ({
      remove: { tokens: [removal('a', version)] },
      entries: [entry('a', 'delete')],
    });
    assert.deepEqual(await store.commit(deletion(7)), { conflict: 'tokens.version' });
    assert.ok(await read(store, 'a'));
    assert.deepEqual(await store.commit(deletion(1)), {});
    assert.equal(await read(store, 'a'), undefined);
    assert.deepEqual(await store.commit(deletion(1)), { conflict: 'tokens.version' });
    assert.deepEqual(await store.commit(creation(token('a'))), {});
  });

  test('a key, and what must be unique, can be handed from one row to another in one change', async (t) => {
    const store = await engine.store(t);
    const claim = (fingerprint: string) => ({ fingerprint, deduplicated: 1 }) as const;
    const ids = Array.from({ length: 20 }, (_, index) => `t-${index}`);
    await Promise.all(ids.map((id) => store.commit(creation(token(id, claim(id))))));
    // Together, so that all of them are one statement where the engine has one for a group.
    const outcomes = await Promise.all(
      ids.map((id) =>
        store.commit({
          insert: { tokens: [token(id, { ...claim(id), type: 'card' })] },
          remove: { tokens: [removal(id)] },
          entries: [entry(id)],
        }),
      ),
    );
    assert.deepEqual(
      outcomes,
      ids.map(() => ({})),
    );
    const handedOn = await store.commit({
      insert: { tokens: [token('new', claim('t-0'))] },
      replace: { tokens: [token('t-0', { version: 2, ...claim('t-1') })] },
      remove: { tokens: [removal('t-1')] },
      entries: [entry('new')],
    });
    assert.deepEqual(handedOn, {});
    assert.equal((await read(store, 't-0'))?.fingerprint, 't-1');
    assert.equal((await read(store, 'new'))?.fingerprint, 't-0');
    assert.equal(await read(store, 't-1'), undefined);
  });

  test('what a row owns goes with it, also where another takes its place, and nothing else does', async (t) => {
    const store = await engine.store(t);
    const [a, b] = [token('a'), token('b')];
    const search_terms = [termOf(a, 'xxxx'), termOf(a, 'yyyy'), termOf(b, 'xxxx')];
    const terms = () =>
      store.select((db) =>
        db.selectFrom('search_terms').select(['token_id', 'term']).orderBy('token_id'),
      );
    const owned = { insert: { tokens: [a, b], search_terms }, entries: [entry('a')] } as const;
    assert.deepEqual(await store.commit(owned), {});
    const late = { remove: { tokens: [removal('a', 2)] }, entries: [entry('a')] } as const;
    assert.deepEqual(await store.commit(late), { conflict: 'tokens.version' });
    assert.equal((await terms()).length, 3);
    const handed: Change = {
      remove: { tokens: [removal('a', 1)] },
      insert: { tokens: [a], search_terms: [termOf(a, 'yyyy'), termOf(a, 'zzzz')] },
      entries: [entry('a')],
    };
    assert.deepEqual(await store.commit(handed), {});
    assert.deepEqual((await terms()).map(({ token_id, term }) => `${token_id} ${term}`).sort(), [
      'a yyyy',
      'a zzzz',
      'b xxxx',
    ]);
  });

  test('a change that the engine cannot take fails alone, and is no failure to try again', async (t) => {
    const store = await engine.store(t);
    const settled = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) =>
        store.commit(creation(token(`t-${index}`, index === 17 ? { type: null as never } : {}))),
      ),
    );
    const failed = settled.filter((result) => result.status === 'rejected');
    assert.equal(failed.length, 1);
    assert.equal(failed[0]?.reason.code, 'internal');
    assert.equal((await logs(store)).length, 49);
  });

  test('where part of the storage is gone, changes that need it fail alone and can be tried again', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    t.after(() => store.close());
    const change = (id: string, more: Change['insert'] = {}): Change => ({
      insert: { tokens: [token(id)], ...more },
      entries: [entry(id)],
    });
    const term = termOf(token('t-3'), 'xxxx');
    const searchable = change('t-3', { search_terms: [term] });
    await store.commit(change('t-0'));
    await engine.run(place, 'alter table search_terms rename to terms_away');
    const settled = await Promise.allSettled(
      [change('t-1'), change('t-2'), searchable, change('t-4')].map((one) => store.commit(one)),
    );
    assert.deepEqual(
      settled.map((result) => (result.status === 'rejected' ? result.reason.code : 'done')),
      ['done', 'done', 'unavailable', 'done'],
    );
    await engine.run(place, 'alter table terms_away rename to search_terms');
    assert.deepEqual(await store.commit(searchable), {});
    assert.equal((await logs(store)).length, 5);
  });

  test('several tables change together or not at all', async (t) => {
    const store = await engine.store(t);
    const term = termOf(token('a'), 't1t1');
    await store.commit({
      insert: { tokens: [token('a')], search_terms: [term] },
      entries: [entry('a')],
    });
    const outcome = await store.commit({
      remove: {
        search_terms: [term],
        tokens: [removal('a', 9)],
      },
      entries: [entry('a', 'delete')],
    });
    assert.deepEqual(outcome, { conflict: 'tokens.version' });
    const terms = await store.select((db) => db.selectFrom('search_terms').selectAll());
    assert.deepEqual(
      terms.map((row) => row.term),
      ['t1t1'],
    );
  });

  test('every entry is chained to the one before it in its stream, without a gap', async (t) => {
    const store = await engine.store(t);
    await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        store.commit(creation(token(index % 10 === 9 ? 'same' : `own-${index}`))),
      ),
    );
    const rows = await logs(store);
    assert.equal(rows.length, 91);
    const heads = new Map<string, { seq: number; hash: string }>();
    for (const row of rows) {
      const head = heads.get(row.stream_id) ?? { seq: 0, hash: streamSeed(tenant, row.stream_id) };
      assert.equal(row.seq, head.seq + 1);
      assert.equal(row.hash, entryHash(head.hash, row.seq, textOf(row, row.state)));
      heads.set(row.stream_id, row);
    }
  });

  test('what was committed is there after closing and opening again, and streams never fork', async (t) => {
    const place = await engine.place(t);
    const first = await engine.open(place);
    await first.commit(creation(token('a')));
    await first.close();
    const second = await engine.open(place);
    t.after(() => second.close());
    assert.ok(await read(second, 'a'));
    await second.commit(creation(token('b')));
    const rows = await logs(second);
    assert.equal(new Set(rows.map((row) => `${row.stream_id} ${row.seq}`)).size, 2);
  });

  test('two processes on one store see each other at once', async (t) => {
    const place = await engine.place(t);
    const [one, two] = await Promise.all([engine.open(place), engine.open(place)]);
    t.after(() => Promise.all([one.close(), two.close()]));
    await one.commit(creation(token('a')));
    assert.ok(await read(two, 'a'));
    const outcomes = await Promise.all(
      [one, two].map((store) => store.commit(creation(token('b')))),
    );
    assert.equal(outcomes.filter((outcome) => outcome.conflict === undefined).length, 1);
  });

  test('closing finishes what was accepted', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    const commits = Array.from({ length: 50 }, (_, index) =>
      store.commit(creation(token(`t-${index}`))),
    );
    const closed = store.close();
    assert.ok((await Promise.all(commits)).every((outcome) => outcome.conflict === undefined));
    await closed;
    const again = await engine.open(place);
    t.after(() => again.close());
    assert.equal(
      (await again.select((db) => db.selectFrom('tokens').select('token_id'))).length,
      50,
    );
  });

  test('a closed store accepts nothing, and nothing of it comes back', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    await store.commit(creation(token('a')));
    await store.close();
    const attempts = {
      commit: () => store.commit(creation(token('b'))),
      get: () => read(store, 'a'),
      select: () => logs(store),
      scan: () => store.scan((db) => db.selectFrom('logs').selectAll(), 'vault'),
      ping: () => store.ping(),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      await assert.rejects(attempt, { code: 'unavailable' }, name);
    }
    const [row] = await engine.run(place, 'select count(*) as n from tokens');
    assert.equal(Number(row?.['n']), 1);
  });

  test('a database of a later release is refused and left as it is', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    await store.commit(creation(token('a')));
    await store.close();
    const later = `version = 999, oldest_server = ${schemaVersion + 1}`;
    await engine.run(place, `update schema_version set ${later}`);
    // Closed where it opens after all, so that the test fails and does not hang.
    const opening = async () => (await engine.open(place)).close();
    await assert.rejects(opening, { name: 'DowngradeError' });
    const own = `version = ${schemaVersion}, oldest_server = 1`;
    await engine.run(place, `update schema_version set ${own}`);
    const again = await engine.open(place);
    t.after(() => again.close());
    assert.ok(await read(again, 'a'));
  });
});
