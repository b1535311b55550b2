/** /healthz, /readyz and /ping: for probes and clients, without a key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { healthOperations } from '../../src/api/service.ts';
import { onBothEngines } from '../support/engines.ts';
import { createStillClock, startVault } from '../support/vault.ts';

onBothEngines('Health', (engine) => {
  test('200: alive, ready, and there, for anybody', async (t) => {
    const vault = await startVault(t, engine);
    const told = { '/healthz': '{"status":"alive"}', '/readyz': '{"status":"ready"}', '/ping': '' };
    for (const [path, text] of Object.entries(told)) {
      const answer = await vault.send('GET', path);
      assert.deepEqual([answer.status, answer.text], [200, text], path);
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      const head = await vault.send('HEAD', `${path}/`);
      assert.deepEqual([head.status, head.text], [200, ''], path);
    }
  });

  test('405: they are only read', async (t) => {
    const vault = await startVault(t, engine);
    for (const path of ['/healthz', '/readyz', '/ping']) {
      const answer = await vault.send('POST', path, { body: {} });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), 'GET, HEAD');
    }
  });

  test('503: not ready once its storage is gone, said within a second', async (t) => {
    const clock = createStillClock();
    const store = await engine.open(await engine.place(t));
    const readyz = healthOperations({ store, clock }).find(({ path }) => path === '/readyz');
    assert.deepEqual(await readyz?.handle({}), { status: 200, body: { status: 'ready' } });
    await store.close();
    // A verdict is given again for a second, because anybody may ask and each costs a write.
    assert.equal((await readyz?.handle({}))?.status, 200);
    clock.advance(1000);
    const body = { status: 'storage unavailable' };
    assert.deepEqual(await readyz?.handle({}), { status: 503, body });
  });
});
