/** POST /access/explain: which rule decides, why, and what would be shown. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { withoutUuids } from '../support/scan.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('POST /access/explain', (engine) => {
  const newTenant = tenantsOf(engine);

  const rules = [
    { priority: 1, container: '/pci/high/', permissions: ['token:read'], transform: 'mask' },
    { priority: 2, container: '/pci/', permissions: ['token:delete'], transform: 'redact' },
    { priority: 3, container: '/pci/', permissions: ['token:read'], transform: 'reveal' },
    { priority: 4, container: '/', permissions: ['token:read'], transform: 'redact' },
  ];
  const create = async (tenant: TestTenant, given: Given = {}) =>
    (
      await tenant.send('POST', '/applications', {
        key: tenant.managementKey,
        body: { name: 'a', type: 'private', permissions: ['token:search'], rules, ...given },
      })
    ).body;
  const explain = (tenant: TestTenant, body: Given, key = tenant.managementKey) =>
    tenant.send('POST', '/access/explain', { key, body });
  const verdicts = (answer: { body: { rules: { verdict: string }[] } }) =>
    answer.body.rules.map(({ verdict }) => verdict);

  test('200: the first rule that holds the permission here decides; each rule says why not', async () => {
    const tenant = await newTenant();
    const { id, keys } = await create(tenant);
    const asked = { permission: 'token:read', container: '/PCI/low/' };
    const answer = await explain(tenant, { application_id: id, ...asked });
    assert.equal(answer.status, 200);
    const { allowed, decided_by, rule, transform, shown, container } = answer.body;
    assert.deepEqual(
      { allowed, decided_by, transform, shown, container },
      {
        allowed: true,
        decided_by: 'rule',
        transform: 'reveal',
        shown: 'plaintext',
        container: '/pci/low/',
      },
    );
    assert.deepEqual(rule, rules[2]);
    assert.deepEqual(verdicts(answer), [
      'other_tokens',
      'other_permission',
      'decides',
      'not_reached',
    ]);
    const byKey = await explain(tenant, { key_id: keys[0].id, ...asked });
    assert.deepEqual(byKey.body, answer.body);
    assert.ok((await tenant.logged('application')).includes('explain'));
    assert.deepEqual(await tenant.logged('token'), []);
  });

  test('200: of permissions that send values it says that they go whole, whatever the transform', async () => {
    const tenant = await newTenant();
    const sending = ['token:use', 'proxy:invoke', 'reactor:invoke'];
    for (const transform of ['redact', 'mask', 'reveal']) {
      const rule = { priority: 1, container: '/', permissions: sending, transform };
      const { id } = await create(tenant, { permissions: [], rules: [rule] });
      for (const permission of sending) {
        const asked = { application_id: id, permission, container: '/pci/' };
        const { body } = await explain(tenant, asked);
        assert.deepEqual(
          [body.allowed, body.transform, body.shown],
          [true, transform, 'plaintext'],
        );
        assert.match(body.reason, /goes whole to .*an administrator wrote/);
        assert.match(body.reason, /may come back to the caller/);
      }
    }
    const { body: listed } = await tenant.send('GET', '/permissions');
    for (const { type, description } of listed) {
      if (sending.includes(type)) assert.match(description, /shows the value/, type);
    }
  });

  test('200: what it says is what the key then meets, for every rule and transform', async () => {
    const tenant = await newTenant();
    const { id, key } = await create(tenant);
    for (const container of ['/pci/high/x/', '/pci/low/', '/elsewhere/']) {
      for (const mask of ['{{ data | reveal_last: 4 }}', undefined]) {
        const token = await tenant.token({
          type: 'token',
          data: '4242424242424242',
          containers: [container],
          ...(mask && { mask }),
        });
        const asked = { application_id: id, permission: 'token:read', token_id: token.body.id };
        const { body } = await explain(tenant, asked);
        const read = await tenant.send('GET', `/tokens/${token.body.id}`, { key });
        const seen =
          read.body.data === undefined
            ? 'nothing'
            : read.body.data === '4242424242424242'
              ? 'plaintext'
              : 'masked';
        assert.equal(body.shown, seen, `${container} ${mask}`);
        assert.ok(!withoutUuids(JSON.stringify(body)).includes('4242'));
      }
    }
  });

  test('200: the plain permission decides where no rule does, and nothing where there is none', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const ask = (permission: string) =>
      explain(tenant, { application_id: id, permission, container: '/x/' });
    const plain = await ask('token:search');
    assert.deepEqual([plain.body.allowed, plain.body.decided_by], [true, 'permission']);
    assert.deepEqual([plain.body.transform, plain.body.shown], ['mask', 'masked']);
    const none = await ask('token:update');
    assert.deepEqual([none.body.allowed, none.body.decided_by], [false, 'nothing']);
    assert.equal(none.body.shown, 'nothing');
    assert.equal(none.body.transform, undefined);
  });

  test('200: a permission that is not about tokens needs neither token nor container', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant, {
      type: 'management',
      permissions: ['log:read'],
      rules: [],
    });
    const ask = async (permission: string) =>
      (await explain(tenant, { application_id: id, permission })).body.allowed;
    assert.deepEqual([await ask('log:read'), await ask('tenant:delete')], [true, false]);
  });

  test('200: the key of a session is explained by what the session was granted', async () => {
    const tenant = await newTenant();
    const token = await tenant.token({ type: 'token', data: 1 });
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { nonce } = (await tenant.send('POST', '/sessions', { key: publicKey })).body;
    const [row] = (await tenant.rows('api_keys')).filter((one) => one.session_id !== null);
    const asked = { key_id: row?.key_id, permission: 'token:read', token_id: token.body.id };
    const before = await explain(tenant, asked);
    assert.deepEqual([before.status, before.body.allowed], [200, false]);
    assert.match(before.body.reason, /not authorized/);
    const condition = { attribute: 'id', operator: 'equals', value: token.body.id };
    const rule = {
      priority: 1,
      conditions: [condition],
      permissions: ['token:read'],
      transform: 'reveal',
    };
    await tenant.send('POST', '/sessions/authorize', { body: { nonce, rules: [rule] } });
    const after = await explain(tenant, asked);
    assert.deepEqual([after.body.allowed, after.body.shown], [true, 'plaintext']);
    assert.deepEqual(after.body.rule, rule);
    tenant.vault.clock.advance(180_000);
    assert.equal((await explain(tenant, asked)).status, 404);
  });

  test('400: too little, too much, and what is none', async () => {
    const tenant = await newTenant();
    const application = { application_id: missing };
    const permission = 'token:read';
    for (const [body, attributes] of [
      [{ permission, container: '/' }, ['application_id']],
      [{ ...application, key_id: missing, permission, container: '/' }, ['application_id']],
      [{ ...application, container: '/' }, ['permission']],
      [{ ...application, permission: 'token:raed', container: '/' }, ['permission']],
      [{ ...application, permission }, ['token_id']],
      [{ ...application, permission, container: '/', token_id: 'abc' }, ['token_id']],
      [{ ...application, permission, container: 'pci' }, ['container']],
      [{ ...application, permission: 'log:read', container: '/' }, ['permission']],
      [{ ...application, permission, container: '/', why: true }, ['why']],
    ] as const) {
      const answer = await explain(tenant, body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors), attributes);
    }
  });

  test('401, 403, 404: without a key, without application:read, and for what is not there', async () => {
    const tenant = await newTenant();
    const foreign = await newTenant();
    const { id } = await create(tenant);
    const other = await create(foreign);
    const token = await foreign.token({ type: 'token', data: 1 });
    const body = { application_id: id, permission: 'token:read', container: '/' };
    assert.equal((await tenant.vault.send('POST', '/access/explain', { body })).status, 401);
    assert.equal((await explain(tenant, body, tenant.key)).status, 403);
    const { container: _container, ...question } = body;
    for (const [here, there] of [
      [
        { ...body, application_id: missing },
        { ...body, application_id: other.id },
      ],
      [
        { key_id: missing, permission: 'token:read', container: '/' },
        { key_id: other.keys[0].id, permission: 'token:read', container: '/' },
      ],
      [
        { ...question, token_id: 'missing' },
        { ...question, token_id: token.body.id },
      ],
    ] as const) {
      const [unknown, elsewhere] = [await explain(tenant, here), await explain(tenant, there)];
      assert.equal(unknown.status, 404);
      assert.equal(unknown.text, elsewhere.text);
    }
  });
});
