/** Reads by key: large rows are read whole, and nobody's small ones wait for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TokenId } from '../../src/base/ids.ts';
import { createLargeReads, largeReadsWaitingMax } from '../../src/store/postgres/large-reads.ts';
import { pageBytesMax } from '../../src/store/queries/key-versions.ts';
import { storedBytesOf } from '../../src/store/queries/stored-bytes.ts';
import { unverifiedColumns } from '../../src/store/stored-row.ts';
import { creation, entry, tenant, token } from '../support/changes.ts';
import { engineOf, onBothEngines, onPostgres } from '../support/engines.ts';

const keyOf = (id: string) => ({ tenant_id: tenant, token_id: id as TokenId });
const metadata = (length: number) => JSON.stringify({ k: 'x'.repeat(length) });

onBothEngines('reads that arrive together', (engine) => {
  test('each row comes back exactly, however large it and its columns are', async (t) => {
    const store = await engine.store(t);
    const all = { search_indexes: '["{{ data }}"]', mask: '"*"', metadata: metadata(9) };
    const rows = [
      token('small', all),
      token('most of a small one', { metadata: null, data: new Uint8Array(pageBytesMax) }),
      token('one byte more', { metadata: null, data: new Uint8Array(pageBytesMax + 1) }),
      token('large', { ...all, data: new Uint8Array(900_000).fill(7) }),
      token('large beside its data', { ...all, metadata: metadata(20_000) }),
    ];
    for (const row of rows) assert.deepEqual(await store.commit(creation(row)), {});
    const ids = [...rows.map((row) => row.token_id as string), 'missing', 'large'];
    const read = await Promise.all(ids.map((id) => store.get('tokens', keyOf(id))));
    const plain = read.map((row) => {
      const columns = row && unverifiedColumns(row);
      return columns && { ...columns, data: new Uint8Array(columns.data) };
    });
    assert.deepEqual(plain, [...rows, undefined, rows[3]]);
  });

  test('a large row that is replaced meanwhile is read as it was or as it is', async (t) => {
    const store = await engine.store(t);
    const data = [1, 2].map((value) => new Uint8Array(900_000).fill(value));
    await store.commit(creation(token('a', { data: data[0] ?? new Uint8Array() })));
    const replacement = token('a', { version: 2, data: data[1] ?? new Uint8Array() });
    const [row] = await Promise.all([
      store.get('tokens', keyOf('a')),
      store.commit({ replace: { tokens: [replacement] }, entries: [entry('a', 'update')] }),
    ]);
    assert.ok(row);
    assert.deepEqual(new Uint8Array(unverifiedColumns(row).data), data[row.version - 1]);
  });
});

onPostgres('a row is there before the lists that were asked for first', async (t) => {
  const store = await engineOf('postgres').store(t);
  await store.commit(creation(token('one')));
  const page = storedBytesOf(tenant);
  const lists = Array.from({ length: 300 }, (_, n) => `list ${n}`);
  const arrived: string[] = [];
  const asked = lists.map((list) => store.select(page).then(() => arrived.push(list)));
  const read = store.get('tokens', keyOf('one')).then(() => arrived.push('row'));
  await Promise.all([...asked, read]);
  // Those that have a session go on, and with each session that is free a list and a row take turns.
  assert.ok(arrived.indexOf('row') < 50, `after ${arrived.indexOf('row')} lists`);
});

onPostgres('a small row is there before the large ones that were asked for first', async (t) => {
  const store = await engineOf('postgres').store(t);
  const large = Array.from({ length: 20 }, (_, n) => `large-${n}`);
  const data = new Uint8Array(100_000);
  await Promise.all(large.map((id) => store.commit(creation(token(id, { data })))));
  await store.commit(creation(token('small')));
  const arrived: string[] = [];
  await Promise.all(
    [...large, 'small'].map(async (id) => {
      await store.get('tokens', keyOf(id));
      arrived.push(id);
    }),
  );
  assert.equal(arrived[0], 'small');
  assert.equal(arrived.length, large.length + 1);
});

test('a tenant has half of the reads of large rows under way, and others the rest', async () => {
  const readLarge = createLargeReads(4);
  const begun: string[] = [];
  const gates: (() => void)[] = [];
  const read = (name: string) =>
    readLarge(name, async () => {
      begun.push(name);
      await new Promise<void>((resolve) => gates.push(resolve));
      return name;
    });
  const first = Array.from({ length: largeReadsWaitingMax.tenant + 2 }, () => read('a'));
  const others = [read('b'), read('b'), read('c')];
  // Where others wait, the next one begins in a turn of its own.
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(begun, ['a', 'a', 'b', 'c']);
  await assert.rejects(read('a'), { code: 'overloaded' });
  const all = [...first, ...others];
  let open = true;
  void Promise.all(all).finally(() => {
    open = false;
  });
  while (open) {
    gates.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(gates.length <= 4);
  }
  assert.deepEqual((await Promise.all(all)).length, begun.length);
});

test('a read of a large row that fails gives its place to the next', async () => {
  const readLarge = createLargeReads(1);
  const failed = readLarge('a', () => Promise.reject(new Error('no connection')));
  const next = readLarge('a', async () => 'read');
  await assert.rejects(failed, { message: 'no connection' });
  assert.equal(await next, 'read');
});
