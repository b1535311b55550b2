/** POST /applications. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';

/** Stands in refused values, and must not be heard of again. */
const marker = 'mArKeR';

const rule = {
  priority: 1,
  container: '/pci/',
  permissions: ['token:read'],
  transform: 'mask',
};

const request = { name: 'Checkout', type: 'private', permissions: ['token:create'] };
const many = (length: number) =>
  Array.from({ length }, (_, index) => ({ ...rule, priority: index + 1 }));
const withRule = (given: Given) => ({ rules: [{ ...rule, ...given }] });

/** The attributes sent over a valid request, and the path the answer must name. */
const wrong: readonly (readonly [Given, string])[] = [
  [{ name: undefined }, 'name'],
  [{ name: null }, 'name'],
  [{ name: 1 }, 'name'],
  [{ name: '' }, 'name'],
  [{ name: marker.padEnd(201, 'x') }, 'name'],
  [{ name: `${marker}\n` }, 'name'],
  [{ name: `${marker}\0` }, 'name'],
  [{ type: undefined }, 'type'],
  [{ type: marker }, 'type'],
  [{ type: ['private'] }, 'type'],
  [{ permissions: marker }, 'permissions'],
  [{ permissions: [1] }, 'permissions[0]'],
  [{ permissions: ['token:create', marker] }, 'permissions[1]'],
  [{ permissions: ['constructor'] }, 'permissions[0]'],
  [{ permissions: ['token:create', 'three-ds:invoke'] }, 'permissions[1]'],
  [{ type: 'management', permissions: ['apple-pay:read'] }, 'permissions[0]'],
  [{ permissions: ['log:read'] }, 'permissions[0]'],
  [{ type: 'public', permissions: ['token:read'] }, 'permissions[0]'],
  [{ type: 'management', permissions: ['token:read'] }, 'permissions[0]'],
  [{ permissions: Array(51).fill('token:read') }, 'permissions'],
  [{ permissions: [] }, 'permissions'],
  [{ permissions: null }, 'permissions'],
  [{ rules: marker }, 'rules'],
  [{ rules: [marker] }, 'rules[0]'],
  [{ rules: many(101) }, 'rules'],
  [{ rules: [rule, rule] }, 'rules[1].priority'],
  [withRule({ priority: 0 }), 'rules[0].priority'],
  [withRule({ priority: 1.5 }), 'rules[0].priority'],
  [withRule({ priority: undefined }), 'rules[0].priority'],
  [withRule({ container: marker }), 'rules[0].container'],
  [withRule({ container: null }), 'rules[0].container'],
  [withRule({ permissions: [] }), 'rules[0].permissions'],
  [withRule({ permissions: [marker] }), 'rules[0].permissions[0]'],
  [withRule({ permissions: ['application:read'] }), 'rules[0].permissions[0]'],
  [withRule({ transform: marker }), 'rules[0].transform'],
  [withRule({ transform: undefined }), 'rules[0].transform'],
  [withRule({ description: 1 }), 'rules[0].description'],
  [withRule({ description: marker.padEnd(501, 'x') }), 'rules[0].description'],
  [
    withRule({
      container: undefined,
      conditions: [{ attribute: 'id', operator: 'equals', value: marker }],
    }),
    'rules[0].conditions',
  ],
  [withRule({ [`x_${marker}`]: 1 }), `rules[0].x_${marker}`],
  [{ create_key: marker }, 'create_key'],
  [{ key: marker }, 'key'],
];

onBothEngines('POST /applications', (engine) => {
  const tenants = tenantsOf(engine);

  const create = (tenant: TestTenant, body: unknown) =>
    tenant.send('POST', '/applications', { key: tenant.managementKey, body });

  test('201: an application with its first key, shown this once, that works at once', async () => {
    const tenant = await tenants();
    const rules = [{ ...rule, description: 'cards', permissions: ['token:create', 'token:read'] }];
    const created = await create(tenant, { ...request, rules });
    assert.equal(created.status, 201);
    const { body } = created;
    assert.equal(created.headers.get('location'), `/applications/${body.id}`);
    assert.equal(body.tenant_id, tenant.id);
    assert.equal(body.name, 'Checkout');
    assert.equal(body.type, 'private');
    assert.deepEqual(body.permissions, ['token:create']);
    assert.deepEqual(body.rules, rules);
    assert.match(body.key, /^key_test_pvt_[0-9A-Za-z]{49}$/);
    assert.equal(body.keys.length, 1);
    assert.equal(body.keys[0].key, body.key);
    const { key } = body;
    const token = { type: 'card_number', data: '4242424242424242' };
    const masked = await tenant.send('POST', '/tokens', { key, body: token });
    assert.equal(masked.body.data, 'XXXXXXXXXXXX4242');
    assert.equal(masked.body.created_by, body.id);
    const stored = JSON.stringify([
      await tenant.rows('applications'),
      await tenant.rows('api_keys'),
      await tenant.rows('logs'),
    ]);
    assert.equal(stored.includes(key), false, 'the key is stored');
    assert.equal(JSON.stringify(tenant.vault.logged).includes(key), false);
  });

  test('201: each kind of application has a key of its kind', async () => {
    const tenant = await tenants();
    const kinds = [
      { type: 'public', permissions: ['token:create'], form: /^key_test_pub_\w{49}$/ },
      { type: 'private', permissions: ['token:use'], form: /^key_test_pvt_\w{49}$/ },
      { type: 'management', permissions: ['log:read'], form: /^key_test_mgt_\w{49}$/ },
    ];
    for (const { form, ...kind } of kinds) {
      const { body } = await create(tenant, { name: 'x', ...kind });
      assert.equal(body.type, kind.type);
      assert.match(body.key, form);
    }
    assert.equal((await tenant.logged('application')).length, 5);
  });

  test('201: without a key when none is wanted, and nulls mean absent', async () => {
    const tenant = await tenants();
    const before = (await tenant.rows('api_keys')).length;
    const { body } = await create(tenant, { ...request, rules: null, create_key: false });
    assert.equal('key' in body, false);
    assert.deepEqual(body.keys, []);
    assert.deepEqual(body.rules, []);
    assert.equal((await tenant.rows('api_keys')).length, before);
    const byDefault = await create(tenant, { ...request, create_key: null });
    assert.equal(byDefault.body.keys.length, 1);
  });

  test('201: names, permissions and rules up to their limits', async () => {
    const tenant = await tenants();
    const name = 'ü'.repeat(200);
    const { body } = await create(tenant, {
      ...request,
      name,
      rules: many(100).map((one) => ({ ...one, description: 'd'.repeat(500) })),
    });
    assert.equal(body.name, name);
    assert.equal(body.rules.length, 100);
  });

  test('400: each attribute of a wrong type, shape or size is named, and nothing is stored', async () => {
    const tenant = await tenants();
    const before = [await tenant.rows('applications'), await tenant.counts()];
    for (const [attributes, path] of wrong) {
      const refused = await create(tenant, { ...request, ...attributes });
      const told = `${JSON.stringify(attributes).slice(0, 200)} ${refused.text}`;
      assert.equal(refused.status, 400, told);
      assert.deepEqual(Object.keys(refused.body.errors), [path], told);
      assert.equal(refused.text.replace(path, '').includes(marker), false, told);
    }
    assert.deepEqual([await tenant.rows('applications'), await tenant.counts()], before);
    assert.equal(JSON.stringify(tenant.vault.logged).includes(marker), false);
  });

  test('422: a tenant has as many applications as its quota says', async () => {
    const tenant = await tenants();
    const limit = (await tenant.rows('applications')).length + 1;
    await tenant.setQuotas({ application_limit: limit });
    const { body } = await create(tenant, request);
    const refused = await create(tenant, request);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, new RegExp(`${limit} applications .*application_limit`));
    const removed = await tenant.send('DELETE', `/applications/${body.id}`, {
      key: tenant.managementKey,
    });
    assert.equal(removed.status, 204);
    assert.equal((await create(tenant, request)).status, 201);
  });

  test('403: without application:create; logged as denied, nothing is stored', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ type: 'management', permissions: ['log:read'] });
    const before = (await tenant.rows('applications')).length;
    for (const holder of [tenant.key, key]) {
      const denied = await tenant.send('POST', '/applications', { key: holder, body: request });
      assert.equal(denied.status, 403);
    }
    assert.equal((await tenant.rows('applications')).length, before);
    const denials = (await tenant.logged('application')).filter((one) => one === 'create denied');
    assert.equal(denials.length, 2);
  });
});
