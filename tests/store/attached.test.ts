/** One store on several threads: each sees what any of them committed, and one writer commits for all. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import type { Worker } from 'node:worker_threads';
import type { TokenId } from '../../src/base/ids.ts';
import { flatten } from '../../src/store/change.ts';
import { monotonicMs } from '../../src/store/commit/queue.ts';
import { attachStore } from '../../src/store/open/open.ts';
import { writerLine } from '../../src/store/sqlite/wire.ts';
import type { Store } from '../../src/store/store.ts';
import { creation, tenant, token } from '../support/changes.ts';
import { type Engine, engineOf, onBothEngines, type Place } from '../support/engines.ts';

const keyOf = (id: string) => ({ tenant_id: tenant, token_id: id as TokenId });

function attach(store: Store, place: Place): Promise<Store> {
  const writerPort = store.writerPort ?? (() => Promise.reject(new Error('it has no writer')));
  const { ping, limiter, epochs } = store;
  const owner = { writerPort, ping, limiter };
  return attachStore({ ...place, newStreamId: randomUUID, epochs, threads: 2, owner });
}

/** A store with two that are attached to it, as on threads of their own. */
async function threeStores(t: TestContext, engine: Engine) {
  const place = await engine.place(t);
  const store = await engine.open(place);
  const [one, other] = [await attach(store, place), await attach(store, place)];
  t.after(async () => {
    await Promise.all([one.close(), other.close()]);
    await store.close();
  });
  return { place, store, one, other };
}

onBothEngines('a store that is attached', (engine) => {
  test('commits, reads what others committed, and meets their conflicts', async (t) => {
    const { store, one, other } = await threeStores(t, engine);
    const stores = [store, one, other];
    for (const [index, by] of stores.entries()) {
      assert.deepEqual(await by.commit(creation(token(`by ${index}`))), {});
      for (const reader of stores) {
        assert.equal((await reader.get('tokens', keyOf(`by ${index}`)))?.token_id, `by ${index}`);
      }
    }
    const outcomes = await Promise.all(stores.map((by) => by.commit(creation(token('same')))));
    const conflicts = outcomes.filter(({ conflict }) => conflict === 'tokens.key');
    assert.equal(conflicts.length, 2);
  });

  test('ends what the others keep of an application before its commit resolves', async (t) => {
    const { place, store, one, other } = await threeStores(t, engine);
    const before = store.epochs.now('access');
    await one.commit(creation(token('a')));
    assert.equal(other.epochs.now('access'), before, 'a token gives nobody access');
    const { entries } = creation(token('a'));
    const missing = { key_hash: 'none', version: 1, key_id: 'none' as never };
    await one.commit({ remove: { api_keys: [missing] }, entries });
    assert.equal(other.epochs.now('access'), before, 'what met a conflict changed nothing');
    const closed = await attach(store, place);
    await closed.close();
    await assert.rejects(closed.commit({ remove: { api_keys: [missing] }, entries }));
    assert.notEqual(other.epochs.now('access'), before, 'what failed may have been done');
  });
});

const sqlite = engineOf('sqlite');

/** Another process that writes: until it has released the database, no commit begins. */
function blocker(t: TestContext, place: Place) {
  const other = new DatabaseSync(join(place.dataDir, 'strongroom.db'));
  t.after(() => other.close());
  other.exec('begin immediate');
  return { release: () => other.exec('commit') };
}

test('a snapshot of one thread ends with the commit of another, also within a turn', async (t) => {
  const { place, one, other } = await threeStores(t, sqlite);
  const { release } = blocker(t, place);
  const { now } = one.epochs;
  const before = now('commits');
  const committed = one.commit(creation(token('a')));
  const { promise, resolve, reject } = Promise.withResolvers<unknown[]>();
  setImmediate(() =>
    setTimeout(() => {
      const reads = [1, 2].map(() => other.get('tokens', keyOf('a')));
      release();
      while (now('commits') === before);
      Promise.all([...reads, other.get('tokens', keyOf('a'))]).then(resolve, reject);
    }),
  );
  const [first, second, afterwards] = await promise;
  assert.deepEqual([first, second], [undefined, undefined]);
  assert.ok(afterwards);
  await committed;
});

/** Lines to the writer of a store, as so many threads have them. */
async function linesOf(t: TestContext, count: number) {
  const threads: Worker[] = [];
  const record = (thread: Worker) => threads.push(thread);
  process.on('worker', record);
  t.after(() => void process.off('worker', record));
  const place = await sqlite.place(t);
  const store = await sqlite.open(place);
  t.after(() => store.close());
  const { writerPort } = store;
  assert.ok(writerPort);
  const lines = await Promise.all(
    Array.from({ length: count }, async () => writerLine(await writerPort(), () => undefined)),
  );
  t.after(() => {
    for (const line of lines) line.end();
  });
  const [writer] = threads;
  assert.ok(writer);
  return { place, store, lines, writer };
}

const group = (id: string, patienceMs = 5000) => ({
  changes: [flatten(creation(token(id)))],
  giveUpAt: monotonicMs() + patienceMs,
});

test('what waits on all lines becomes one transaction', async (t) => {
  const { place, store, lines } = await linesOf(t, 8);
  const { release } = blocker(t, place);
  const before = store.epochs.now('commits');
  const outcomes = lines.map((line, index) => line.commit(group(`of ${index}`)));
  release();
  assert.deepEqual(
    await Promise.all(outcomes),
    outcomes.map(() => [{}]),
  );
  const transactions = store.epochs.now('commits') - before;
  assert.ok(transactions <= 2, `${transactions}: that of the first to arrive, and of all others`);
});

test('in one transaction a change fails by itself, and its line alone learns of it', async (t) => {
  const { place, lines } = await linesOf(t, 3);
  const { release } = blocker(t, place);
  const outcomes = lines.map((line, index) =>
    line.commit(group(index === 0 ? 'first' : 'of two lines')),
  );
  release();
  const [first, ...two] = (await Promise.all(outcomes)).flat();
  assert.deepEqual(first, {});
  assert.deepEqual(two.map(({ conflict }) => conflict).sort(), ['tokens.key', undefined]);
});

test('a group whose time ran out takes no other with it', async (t) => {
  const { place, lines } = await linesOf(t, 3);
  const { release } = blocker(t, place);
  const outcomes = lines.map((line, index) =>
    line.commit(group(`of ${index}`, index === 1 ? -1 : 5000)),
  );
  release();
  const [first, late, last] = (await Promise.all(outcomes)).flat();
  assert.deepEqual([first, last], [{}, {}]);
  assert.match(late?.unavailable ?? '', /waited too long/);
});

test('with the writer its lines end: what was under way is uncertain, and the next commit works', async (t) => {
  const { place, store, lines, writer } = await linesOf(t, 1);
  const attached = await attach(store, place);
  t.after(() => attached.close());
  await attached.commit(creation(token('before')));
  const { release } = blocker(t, place);
  const [line] = lines;
  const underWay = [attached.commit(creation(token('lost'))), line?.commit(group('lost too'))];
  const failed = underWay.map((commit) =>
    assert.rejects(Promise.resolve(commit), /unavailable|ended/),
  );
  await Promise.all([once(writer, 'exit'), writer.terminate()]);
  await Promise.all(failed);
  release();
  assert.deepEqual(await attached.commit(creation(token('after'))), {});
  assert.ok(await store.get('tokens', keyOf('after')));
});
