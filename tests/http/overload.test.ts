/** More than the storage can take: 503 at once for what is too much, and the rest is done. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Change } from '../../src/store/change.ts';
import type { Store } from '../../src/store/store.ts';
import { onBothEngines } from '../support/engines.ts';
import { holdWrites } from '../support/locks.ts';
import { rowsOf } from '../support/rows.ts';
import { startVault } from '../support/vault.ts';

const large = 1_000_000;

onBothEngines('an overloaded vault', (engine) => {
  test('503 overloaded with Retry-After; nothing was done, and the next request succeeds', async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const create = (id: string, data: string) =>
      vault.send('POST', '/tokens', { key, body: { id, type: 'token', data } });
    assert.equal((await create('first', 'x')).status, 201);
    const [row] = await rowsOf(engine, vault.place, 'tokens');
    const [entry] = await rowsOf(engine, vault.place, 'logs');
    assert.ok(row && entry);

    const release = await holdWrites(t, engine, vault.place);
    // No token has the version before this one, so each of these waits and then changes nothing.
    const stale = { ...row, version: row.version + 2, data: new Uint8Array(large) };
    const waiting = await fill(vault.running.vault.store, {
      replace: { tokens: [stale] },
      entries: [entry],
    });
    const { status, headers, body } = await create('refused', 'x'.repeat(large));
    const small = create('small', 'x');
    await release();
    assert.equal(status, 503);
    assert.equal(headers.get('retry-after'), '1');
    assert.equal(headers.get('content-type'), 'application/problem+json; charset=utf-8');
    assert.equal(body.type, 'urn:strongroom:problem:overloaded');
    assert.match(body.detail, /Nothing was done; try again\./);

    assert.equal((await small).status, 201);
    await Promise.all(waiting);
    assert.equal((await create('last', 'x'.repeat(large))).status, 201);
    const ids = (await rowsOf(engine, vault.place, 'tokens')).map(({ token_id }) => token_id);
    assert.deepEqual(ids.sort(), ['first', 'last', 'small']);
  });
});

/** Has the change wait again and again, until once more is too much. */
async function fill(store: Store, change: Change): Promise<Promise<unknown>[]> {
  const waiting: Promise<unknown>[] = [];
  let full = false;
  const refused = () => {
    full = true;
  };
  while (!full) {
    waiting.push(store.commit(change).catch(refused));
    await new Promise((turn) => setImmediate(turn));
  }
  return waiting;
}
