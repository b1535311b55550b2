/** Authentication: which keys are let in, and what those learn that are not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const token = { type: 'token', data: 'x' };

/** Another character in the place of the last but `back`. */
const altered = (key: string, back: number) => {
  const at = key.length - 1 - back;
  return `${key.slice(0, at)}${key[at] === 'a' ? 'b' : 'a'}${key.slice(at + 1)}`;
};

onBothEngines('Authentication', (engine) => {
  const tenants = tenantsOf(engine);

  test('401: no key, no such key, and a key that is nearly right look alike, before a body is read', async () => {
    const tenant = await tenants();
    const before = await tenant.counts();
    const wrong = [
      undefined,
      '',
      ' ',
      'x',
      'key_test_pvt_',
      `key_test_pvt_${'0'.repeat(49)}`,
      altered(tenant.key, 0),
      altered(tenant.key, 10),
      tenant.key.replace('_pvt_', '_mgt_'),
      tenant.key.replace('_test_', '_prod_'),
      tenant.key.toUpperCase(),
      `${tenant.key}x`,
      `${tenant.key},${tenant.key}`,
      'unknown.key.of.an.operator.0000000000',
      'x'.repeat(10_000),
    ];
    const answers = [];
    for (const key of wrong) {
      answers.push(await tenant.vault.send('POST', '/tokens', { key, body: '{ malformed' }));
    }
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.deepEqual(answers[0]?.body, {
      type: 'urn:strongroom:problem:unauthenticated',
      title: 'Unauthorized',
      status: 401,
      detail: 'Send a valid API key in the header SVC-API-KEY.',
    });
    assert.deepEqual(await tenant.counts(), before);
    const lines = JSON.stringify(tenant.vault.logged);
    assert.equal(lines.includes(tenant.key.slice(-20)), false, 'a log line holds a key');
  });

  test('401: on every route that needs a key', async () => {
    const tenant = await tenants();
    const routes = [
      ['POST', '/tokens'],
      ['GET', '/tokens/some-id'],
      ['PATCH', '/tokens/some-id'],
      ['DELETE', '/tokens/some-id'],
      ['POST', '/applications'],
      ['GET', '/logs'],
    ] as const;
    for (const [method, path] of routes) {
      assert.equal((await tenant.vault.send(method, path)).status, 401, `${method} ${path}`);
    }
  });

  test('401: within a second of its removal a key works no more', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.send('POST', '/tokens', { body: token })).status, 201);
    const { store } = tenant.vault.running.vault;
    const [entry] = await tenant.rows('logs');
    assert.ok(entry);
    const remove = async () =>
      store.commit({ remove: { api_keys: await tenant.rows('api_keys') }, entries: [entry] });
    // That they are in use is noted beside, in their rows.
    while ((await remove()).conflict !== undefined);
    tenant.vault.clock.advance(1000);
    assert.equal((await tenant.send('POST', '/tokens', { body: token })).status, 401);
  });

  test('401: a key without its application or its tenant is refused', async (t) => {
    const vault = await startVault(t, engine);
    const { store } = vault.running.vault;
    for (const table of ['applications', 'tenants'] as const) {
      const tenant = await newTenant(vault);
      const [entry] = await tenant.rows('logs');
      assert.ok(entry);
      const rows = await tenant.rows(table);
      await store.commit({ remove: { [table]: rows }, entries: [entry] });
      vault.clock.advance(1000);
      assert.equal((await tenant.send('POST', '/tokens', { body: token })).status, 401, table);
    }
  });

  test('403: a key of a kind that may not hold the permission; each refusal is logged', async () => {
    const tenant = await tenants();
    const reader = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const refused = [
      { key: tenant.managementKey, method: 'POST', path: '/tokens', entity: 'token' },
      { key: reader, method: 'GET', path: '/tokens/some-id', entity: 'token' },
      { key: tenant.key, method: 'POST', path: '/applications', entity: 'application' },
      { key: tenant.key, method: 'GET', path: '/logs', entity: 'log' },
    ];
    for (const { key, method, path, entity } of refused) {
      const headers = { 'svc-trace-id': `${method} ${path}`.replace(' ', '_') };
      const answer = await tenant.send(method, path, { key, headers });
      assert.equal(answer.status, 403, path);
      assert.equal(answer.body.title, 'Forbidden');
      const [entry, ...others] = (await tenant.rows('logs')).filter(
        (one) => one.trace_id === headers['svc-trace-id'] && one.result === 'denied',
      );
      assert.deepEqual(others, []);
      assert.equal(entry?.entity_type, entity);
      assert.equal(entry?.entity_id, '*');
    }
  });

  test('a tenant and its keys see nothing of another tenant', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    await tenant.token({ ...token, id: 'mine' });
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? {} : undefined;
      assert.equal((await other.send(method, '/tokens/mine', { body })).status, 404);
    }
    const { body } = await other.send('GET', '/logs', { key: other.managementKey });
    assert.deepEqual(
      new Set(body.data.map((entry: { tenant_id: string }) => entry.tenant_id)),
      new Set([other.id]),
    );
    assert.deepEqual(await tenant.logged(), ['create']);
  });
});
