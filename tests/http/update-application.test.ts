/** PUT and DELETE /applications/{id}. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('changing applications', (engine) => {
  const newTenant = tenantsOf(engine);

  const create = async (tenant: TestTenant, body: Given = {}) => {
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['token:create', 'token:read'], ...body },
    });
    assert.equal(created.status, 201, created.text);
    return created.body;
  };
  const put = (tenant: TestTenant, id: string, body: Given, headers = {}) =>
    tenant.send('PUT', `/applications/${id}`, { key: tenant.managementKey, body, headers });
  const remove = (tenant: TestTenant, id: string) =>
    tenant.send('DELETE', `/applications/${id}`, { key: tenant.managementKey });

  test('PUT 200: name, permissions and rules are replaced as a whole, at once', async () => {
    const tenant = await newTenant();
    const { id, key, ...created } = await create(tenant);
    const rules = [
      { priority: 1, container: '/a/', permissions: ['token:read'], transform: 'reveal' },
    ];
    const updated = await put(tenant, id, { name: 'b', rules });
    assert.equal(updated.status, 200);
    assert.equal(updated.body.name, 'b');
    assert.deepEqual(updated.body.permissions, []);
    assert.deepEqual(updated.body.rules, rules);
    assert.equal(updated.body.type, 'private');
    assert.equal(updated.body.created_at, created.created_at);
    assert.ok(updated.body.modified_at && updated.body.modified_by);
    assert.deepEqual(
      (await tenant.send('GET', `/applications/${id}`, { key: tenant.managementKey })).body,
      updated.body,
    );
    const refused = await tenant.send('POST', '/tokens', { key, body: { type: 'token', data: 1 } });
    assert.equal(refused.status, 403);
    const back = await put(tenant, id, { name: 'b', permissions: ['token:create'] });
    assert.deepEqual(back.body.rules, []);
    const again = await tenant.send('POST', '/tokens', { key, body: { type: 'token', data: 1 } });
    assert.equal(again.status, 201);
    assert.ok((await tenant.logged('application')).includes('update'));
  });

  test('PUT 200: concurrent updates of one application all take effect, one after the other', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const answers = await Promise.all(
      names.map((name) => put(tenant, id, { name, permissions: ['token:create'] })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const [row] = (await tenant.rows('applications')).filter((one) => one.application_id === id);
    assert.equal(row?.version, 6);
  });

  test('PUT 200: the same idempotency key updates once', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const headers = { 'svc-idempotency-key': 'k' };
    const body = { name: 'b', permissions: ['token:create'] };
    const first = await put(tenant, id, body, headers);
    const second = await put(tenant, id, { ...body, name: 'c' }, headers);
    assert.equal(second.status, 200);
    assert.deepEqual(second.body, first.body);
  });

  test('PUT 400: every attribute that is wrong for the kind of application is named', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant, { type: 'public', permissions: ['token:create'] });
    const rule = {
      priority: 1,
      container: '/a/',
      permissions: ['token:create'],
      transform: 'mask',
    };
    for (const [body, attributes] of [
      [{ permissions: ['token:create'] }, ['name']],
      [{ name: 'b' }, ['permissions']],
      [{ name: 'b', permissions: ['token:read'] }, ['permissions[0]']],
      [{ name: 'b', permissions: ['token:create', 'token:craete'] }, ['permissions[1]']],
      [{ name: 'b', rules: [rule, rule] }, ['rules[1].priority']],
      [{ name: 'b', rules: [{ ...rule, container: 'a' }] }, ['rules[0].container']],
      [{ name: 'b', type: 'private', permissions: ['token:create'] }, ['type']],
      [
        { name: 'b', permissions: ['log:read'], rules: [{ ...rule, priority: 0 }] },
        ['permissions[0]', 'rules[0].priority'],
      ],
    ] as const) {
      const answer = await put(tenant, id, body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors), attributes);
    }
    const [row] = (await tenant.rows('applications')).filter((one) => one.application_id === id);
    assert.equal(row?.version, 1);
  });

  test('DELETE 204: the application and all of its keys are gone, at once', async () => {
    const tenant = await newTenant();
    const { id, key } = await create(tenant);
    const second = await tenant.send('POST', `/applications/${id}/keys`, {
      key: tenant.managementKey,
    });
    const deleted = await remove(tenant, id);
    assert.equal(deleted.status, 204);
    assert.equal(deleted.text, '');
    for (const gone of [key, second.body.key]) {
      assert.equal((await tenant.send('GET', '/applications/key', { key: gone })).status, 401);
    }
    const rows = await tenant.rows('api_keys');
    assert.deepEqual(
      rows.filter((row) => row.application_id === id),
      [],
    );
    assert.equal((await remove(tenant, id)).status, 404);
    const deletions = (await tenant.logged('application_key')).filter((one) => one === 'delete');
    assert.equal(deletions.length, 2);
  });

  test('DELETE 204: no key that is created meanwhile is left behind', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const creations = Array.from({ length: 4 }, () =>
      tenant.send('POST', `/applications/${id}/keys`, { key: tenant.managementKey }),
    );
    const [deleted, ...created] = await Promise.all([remove(tenant, id), ...creations]);
    assert.equal(deleted.status, 204);
    for (const { status } of created) assert.ok([201, 404, 422].includes(status), `${status}`);
    const rows = await tenant.rows('api_keys');
    assert.ok(rows.every((row) => row.application_id !== id));
  });

  test('401, 403, 404: without a key, without the permission, and where there is none', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const foreign = await create(await newTenant());
    const body = { name: 'b', permissions: ['token:create'] };
    assert.equal((await tenant.vault.send('PUT', `/applications/${id}`, { body })).status, 401);
    assert.equal((await tenant.vault.send('DELETE', `/applications/${id}`)).status, 401);
    assert.equal((await tenant.send('PUT', `/applications/${id}`, { body })).status, 403);
    assert.equal((await tenant.send('DELETE', `/applications/${id}`)).status, 403);
    for (const other of [missing, foreign.id]) {
      assert.equal((await put(tenant, other, body)).status, 404);
      assert.equal((await remove(tenant, other)).status, 404);
    }
  });
});
