/** What is taken away stops working within a second, on every server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashApiKey } from '../../src/keys/api-key.ts';
import { onBothEngines } from '../support/engines.ts';
import { beginRequest } from '../support/raw-request.ts';
import { newTenant, untilUsed } from '../support/tenant.ts';
import {
  createStillClock,
  managementKey,
  type Sent,
  startVault,
  type TestVault,
} from '../support/vault.ts';

const second = 1000;

onBothEngines('within a second, on every server', (engine) => {
  async function twoServers(t: Parameters<typeof startVault>[0]) {
    const one = await startVault(t, engine);
    const other = await startVault(t, engine, { place: one.place, clock: one.clock });
    const manage = (method: string, path: string, sent: Sent = {}) =>
      one.send(method, path, { key: managementKey, ...sent });
    const { body } = await manage('POST', '/applications', {
      body: { name: 'a', type: 'private', permissions: ['token:create', 'token:read'] },
    });
    const status = async (vault: TestVault, path = '/tokens/missing') =>
      (await vault.send('GET', path, { key: body.key })).status;
    /** Both servers have just looked the key up, so that they know it as well as they ever will. */
    const warm = async () => {
      assert.deepEqual([await status(one), await status(other)], [404, 404]);
    };
    return { one, other, manage, application: body, status, warm };
  }

  test('a deleted key', async (t) => {
    const { one, other, manage, application, status, warm } = await twoServers(t);
    await warm();
    const path = `/applications/${application.id}/keys/${application.keys[0].id}`;
    // The first use of the key is noted meanwhile, which must not save it.
    assert.equal((await manage('DELETE', path)).status, 204);
    assert.equal(await status(one), 401);
    one.clock.advance(second);
    assert.equal(await status(other), 401);
  });

  test('a deleted application', async (t) => {
    const { one, other, manage, application, status, warm } = await twoServers(t);
    await warm();
    assert.equal((await manage('DELETE', `/applications/${application.id}`)).status, 204);
    assert.equal(await status(one), 401);
    one.clock.advance(second);
    assert.equal(await status(other), 401);
  });

  test('a permission', async (t) => {
    const { one, other, manage, application, status, warm } = await twoServers(t);
    await warm();
    const body = { name: 'a', permissions: ['token:create'] };
    assert.equal((await manage('PUT', `/applications/${application.id}`, { body })).status, 200);
    assert.equal(await status(one), 403);
    one.clock.advance(second);
    assert.equal(await status(other), 403);
  });

  test('a deleted tenant', async (t) => {
    const { one, other, manage, status, warm } = await twoServers(t);
    await warm();
    assert.equal((await manage('DELETE', '/tenants/self')).status, 204);
    assert.equal(await status(one), 401);
    one.clock.advance(second);
    assert.equal(await status(other), 401);
  });

  test('a deleted key, also where the request had begun before', async (t) => {
    const { one, other, manage, application } = await twoServers(t);
    const sent = '{"type":"token","data":1}';
    const begin = (vault: TestVault) =>
      beginRequest({
        url: vault.url,
        method: 'POST',
        path: '/tokens',
        headers: { 'svc-api-key': application.key, connection: 'close' },
        length: sent.length,
      });
    const begun = [await begin(one), await begin(other)];
    await manage('DELETE', `/applications/${application.id}`);
    one.clock.advance(second);
    for (const { socket, answer } of begun) {
      socket.write(sent);
      assert.match(await answer, /HTTP\/1\.1 401 /);
    }
  });

  test('a key that the process itself removed, as its jobs do', async (t) => {
    const one = await startVault(t, engine, { clock: createStillClock() });
    const tenant = await newTenant(one);
    await tenant.send('GET', '/tokens/missing');
    await untilUsed(tenant, tenant.key);
    const status = async () => (await tenant.send('GET', '/tokens/missing')).status;
    assert.equal(await status(), 404);
    const { store } = one.running.vault;
    const key = await store.get('api_keys', { key_hash: hashApiKey(tenant.key) });
    const [entry] = await tenant.rows('logs');
    assert.ok(key && entry);
    assert.deepEqual(await store.commit({ remove: { api_keys: [key] }, entries: [entry] }), {});
    assert.equal(await status(), 401);
  });

  test('a new key works on every server as soon as it is answered', async (t) => {
    const { other, manage, application } = await twoServers(t);
    const { body } = await manage('POST', `/applications/${application.id}/keys`);
    const own = await other.send('GET', '/applications/key', { key: body.key });
    assert.equal(own.status, 200);
  });
});
