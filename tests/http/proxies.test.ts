/** POST /proxies, and GET, PUT and DELETE /proxies/{id}. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { writeCertificate } from '../support/certificate.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, destination, leastProxy, sendProxy } from '../support/proxies.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('proxies', (engine) => {
  const newTenant = tenantsOf(engine, {
    environment: { STRONGROOM_PUBLIC_URL: 'https://vault.example.com' },
  });

  test('POST 201: the least that is given, with every default and a key of its own', async () => {
    const tenant = await newTenant();
    const created = await sendProxy(tenant, 'POST', '', { body: leastProxy });
    assert.equal(created.status, 201, created.text);
    const { id, key, created_at, created_by, ...rest } = created.body;
    assert.equal(created.headers.get('location'), `https://vault.example.com/proxies/${id}`);
    assert.match(key, /^[0-9A-Za-z]{24,100}$/);
    assert.ok(created_at && created_by);
    assert.deepEqual(rest, {
      tenant_id: tenant.id,
      name: 'Charge',
      destination_url: destination,
      request_transforms: [],
      response_transforms: [],
      application_id: null,
      configuration: {},
      require_auth: true,
      disable_detokenization: false,
      allow_encrypted: false,
      timeout: 25,
      proxy_host: null,
      state: 'active',
    });
    const other = await createProxy(tenant);
    assert.notEqual(other.key, key);
    assert.deepEqual(await tenant.logged('proxy'), ['create', 'create']);
  });

  test('403: a proxy without code gets no rights from a key that could not make itself a key with them', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.send('GET', '/applications/key')).body;
    const permissions = ['proxy:create', 'proxy:update'];
    const key = await tenant.application({ type: 'management', permissions });
    const application = { id };
    const lent = { ...leastProxy, require_auth: false, application };
    const plain = await createProxy(tenant);
    const lending = await createProxy(tenant, { application });
    for (const [method, path, body] of [
      ['POST', '', lent],
      ['PUT', `/${plain.id}`, lent],
      ['PATCH', `/${plain.id}`, { application }],
      // What is done with the rights is as much as the rights.
      ['PATCH', `/${lending.id}`, { require_auth: false }],
      ['PATCH', `/${lending.id}`, { destination_url: 'https://elsewhere.example.com' }],
      ['PUT', `/${lending.id}`, lent],
    ] as const) {
      const refused = await sendProxy(tenant, method, path, { key, body });
      assert.equal(refused.status, 403, `${method} ${path}: ${refused.text}`);
      assert.match(refused.body.detail, /attribute application .* application:create/);
    }
    const denied = (await tenant.logged('proxy')).filter((one) => one.endsWith('denied'));
    assert.ok(denied.includes('create denied') && denied.includes('update denied'), denied.join());
    const named = await sendProxy(tenant, 'PATCH', `/${lending.id}`, { key, body: { name: 'n' } });
    assert.equal(named.status, 204, named.text);
    const taken = { application: null, require_auth: false };
    const without = await sendProxy(tenant, 'PATCH', `/${lending.id}`, { key, body: taken });
    assert.equal(without.status, 204, without.text);
  });

  test('POST 201: everything that can be given, and GET 200 shows the same', async (t) => {
    const tenant = await newTenant();
    const application = await tenant.send('GET', '/applications/key');
    const { cert, keyFile } = writeCertificate(temporaryDirectory(t));
    const body = {
      name: 'Charge',
      destination_url: `${destination}/`,
      request_transforms: [],
      response_transforms: [],
      application: { id: application.body.id.toUpperCase() },
      configuration: { API_KEY: 'sk_1', 'with space': '' },
      require_auth: false,
      disable_detokenization: true,
      allow_encrypted: true,
      timeout: 60,
      proxy_host: 'Inbound.Example.com',
      allowed_paths: ['/charges', '/refunds/*'],
      allowed_methods: ['POST', 'GET'],
      client_certificate: cert,
      client_key: readFileSync(keyFile, 'utf8'),
    };
    const created = await createProxy(tenant, body);
    const read = await sendProxy(tenant, 'GET', `/${created.id.toUpperCase()}`);
    assert.equal(read.status, 200);
    assert.deepEqual(read.body, created);
    const { id, tenant_id, key, state, created_by, created_at, application_id, ...shown } = created;
    assert.equal(application_id, application.body.id);
    const { application: _application, client_key: _key, ...given } = body;
    assert.deepEqual(shown, {
      ...given,
      proxy_host: 'inbound.example.com',
      allowed_methods: ['GET', 'POST'],
      client_certificate: {
        subject: 'strongroom test',
        expires_at: '2049-12-31T23:59:59.000+00:00',
      },
    });
    assert.doesNotMatch(read.text, /PRIVATE KEY|BEGIN/);
  });

  test('GET 200: without proxy:update the configuration has its names alone', async () => {
    const tenant = await newTenant();
    const { id } = await createProxy(tenant, { configuration: { API_KEY: 'sk_hidden' } });
    const reader = await tenant.application({ type: 'management', permissions: ['proxy:read'] });
    for (const path of [`/${id}`, '']) {
      const read = await sendProxy(tenant, 'GET', path, { key: reader });
      assert.equal(read.status, 200);
      const [shown] = read.body.data ?? [read.body];
      assert.deepEqual(shown.configuration, { API_KEY: null });
      assert.doesNotMatch(read.text, /sk_hidden/);
    }
    const creator = await tenant.application({ type: 'management', permissions: ['proxy:create'] });
    const body = { ...leastProxy, configuration: { API_KEY: 'sk_hidden' } };
    const created = await sendProxy(tenant, 'POST', '', { key: creator, body });
    assert.deepEqual(created.body.configuration, { API_KEY: null });
    const updater = await tenant.application({
      type: 'management',
      permissions: ['proxy:read', 'proxy:update'],
    });
    const clear = await sendProxy(tenant, 'GET', `/${id}`, { key: updater });
    assert.deepEqual(clear.body.configuration, { API_KEY: 'sk_hidden' });
  });

  test('PUT 200: everything is replaced, the key stays, and what is not given is as in a new proxy', async () => {
    const tenant = await newTenant();
    const before = await createProxy(tenant, {
      configuration: { A: '1' },
      timeout: 3,
      require_auth: false,
      proxy_host: 'replaced.example.com',
    });
    const body = { name: 'Other', destination_url: 'https://other.example.com' };
    const updated = await sendProxy(tenant, 'PUT', `/${before.id}`, { body });
    assert.equal(updated.status, 200, updated.text);
    const { modified_at, modified_by, ...rest } = updated.body;
    assert.ok(modified_at && modified_by);
    assert.deepEqual(rest, {
      ...before,
      ...body,
      configuration: {},
      timeout: 25,
      require_auth: true,
      proxy_host: null,
    });
    assert.deepEqual((await sendProxy(tenant, 'GET', `/${before.id}`)).body, updated.body);
    // The host is free again.
    await createProxy(tenant, { proxy_host: 'replaced.example.com' });
  });

  test('DELETE 204: the proxy and all that points to it are gone', async () => {
    const tenant = await newTenant();
    const { id } = await createProxy(tenant, { proxy_host: 'deleted.example.com' });
    assert.equal((await tenant.rows('proxy_addresses')).length, 2);
    const deleted = await sendProxy(tenant, 'DELETE', `/${id}`);
    assert.equal(deleted.status, 204);
    assert.equal(deleted.text, '');
    assert.deepEqual(await tenant.rows('proxies'), []);
    assert.deepEqual(await tenant.rows('proxy_addresses'), []);
    for (const method of ['GET', 'DELETE']) {
      assert.equal((await sendProxy(tenant, method, `/${id}`)).status, 404);
    }
    await createProxy(tenant, { proxy_host: 'deleted.example.com' });
  });

  test('409: a host of another proxy; nothing is written', async () => {
    const tenant = await newTenant();
    const taken = { proxy_host: 'taken.example.com' };
    const own = await createProxy(tenant, taken);
    const body = { ...leastProxy, ...taken };
    const refused = await sendProxy(tenant, 'POST', '', { body });
    assert.equal(refused.status, 409, refused.text);
    assert.deepEqual(Object.keys(refused.body.errors), ['proxy_host']);
    assert.equal((await tenant.rows('proxies')).length, 1);
    const { id } = await createProxy(tenant);
    assert.equal((await sendProxy(tenant, 'PUT', `/${id}`, { body })).status, 409);
    assert.equal((await sendProxy(tenant, 'PATCH', `/${id}`, { body: taken })).status, 409);
    assert.equal((await sendProxy(tenant, 'PUT', `/${own.id}`, { body })).status, 200);
    assert.equal((await sendProxy(tenant, 'PATCH', `/${own.id}`, { body: taken })).status, 204);
  });

  test('409: of proxies that are created at once with one host, one exists', async () => {
    const tenant = await newTenant();
    await tenant.giveHosts('raced.example.com');
    const body = { ...leastProxy, proxy_host: 'raced.example.com' };
    const answers = await Promise.all([1, 2, 3].map(() => sendProxy(tenant, 'POST', '', { body })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409]);
  });

  test('422: a tenant has as many proxies as its quota says', async () => {
    const tenant = await newTenant();
    await tenant.setQuotas({ proxy_limit: 2 });
    const body = leastProxy;
    const answers = await Promise.all([1, 2, 3].map(() => sendProxy(tenant, 'POST', '', { body })));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 422]);
    assert.match(answers.find(({ status }) => status === 422)?.body.detail, /2 .*proxy_limit/);
    const [row] = await tenant.rows('proxies');
    assert.equal((await sendProxy(tenant, 'DELETE', `/${row?.proxy_id}`)).status, 204);
    await createProxy(tenant);
  });

  test('401, 403: without a key, without the permission; the refusal is in the log', async () => {
    const tenant = await newTenant();
    const { id } = await createProxy(tenant);
    const permissions = ['proxy:read', 'proxy:create', 'proxy:update', 'proxy:delete'];
    for (const [method, path, needed] of [
      ['POST', '', 'proxy:create'],
      ['GET', '', 'proxy:read'],
      ['GET', `/${id}`, 'proxy:read'],
      ['PUT', `/${id}`, 'proxy:update'],
      ['PATCH', `/${id}`, 'proxy:update'],
      ['DELETE', `/${id}`, 'proxy:delete'],
    ] as const) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : leastProxy;
      const nobody = await tenant.vault.send(method, `/proxies${path}`, { body });
      assert.equal(nobody.status, 401, `${method} ${path}`);
      const others = permissions.filter((one) => one !== needed);
      const key = await tenant.application({ type: 'management', permissions: others });
      const refused = await sendProxy(tenant, method, path, { key, body });
      assert.equal(refused.status, 403, `${method} ${path}`);
      assert.match(refused.body.detail, new RegExp(needed));
      tenant.vault.clock.advance(refusalWindowMs);
    }
    const denied = (await tenant.logged('proxy')).filter((one) => one.endsWith(' denied'));
    assert.equal(denied.length, 6);
    assert.equal((await tenant.rows('proxies'))[0]?.version, 1);
  });

  test('404: missing, malformed and of another tenant alike', async () => {
    const tenant = await newTenant();
    const foreign = await createProxy(await newTenant());
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'PUT' || method === 'PATCH' ? leastProxy : undefined;
      const texts = new Set<string>();
      for (const id of [missing, 'none', foreign.id]) {
        const answer = await sendProxy(tenant, method, `/${id}`, { body });
        assert.equal(answer.status, 404, `${method} ${id}`);
        texts.add(answer.text);
      }
      assert.equal(texts.size, 1);
    }
  });

  test('an idempotency key creates one proxy', async () => {
    const tenant = await newTenant();
    const sent = {
      key: tenant.managementKey,
      body: leastProxy,
      headers: { 'svc-idempotency-key': 'once' },
    };
    const first = await tenant.send('POST', '/proxies', sent);
    const second = await tenant.send('POST', '/proxies', sent);
    assert.deepEqual([first.status, second.status], [201, 201]);
    assert.deepEqual(second.body, first.body);
    assert.equal((await tenant.rows('proxies')).length, 1);
  });
});
