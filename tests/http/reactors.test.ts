/** /reactors and /reactors/{id}: what is stored of a reactor, and who may store it. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { createReactor, echo, invoker, leastReactor, sendReactor } from '../support/reactors.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { newTenant as newTenantOf, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('reactors', (engine) => {
  const newTenant = tenantsOf(engine);

  test('POST 201: the least that is given, with every default', async () => {
    const tenant = await newTenant();
    const created = await sendReactor(tenant, 'POST', '', { body: leastReactor });
    assert.equal(created.status, 201, created.text);
    const { id, created_at, created_by, ...rest } = created.body;
    assert.equal(created.headers.get('location'), `/reactors/${id}`);
    assert.ok(created_at && created_by);
    assert.deepEqual(rest, {
      tenant_id: tenant.id,
      name: 'Sign',
      code: echo,
      configuration: {},
      runtime: { image: 'node-bt' },
      state: 'active',
    });
    assert.deepEqual(await tenant.logged('reactor'), ['create']);
  });

  test('POST 201 and GET 200: everything that can be given', async () => {
    const tenant = await newTenant();
    const application = await tenant.send('GET', '/applications/key');
    const older = {
      name: 'Older',
      code: echo,
      configuration: { KEY: 'sk', 'with space': '' },
      application: { id: application.body.id.toUpperCase() },
      runtime: { image: 'node-bt', timeout: 30 },
      allowed_hosts: ['PSP.example.com', '*.example.org'],
    };
    const created = await createReactor(tenant, older);
    assert.deepEqual(created.application, { id: application.body.id });
    assert.deepEqual(created.allowed_hosts, ['psp.example.com', '*.example.org']);
    assert.deepEqual(created.runtime, older.runtime);
    const read = await sendReactor(tenant, 'GET', `/${created.id.toUpperCase()}`);
    assert.deepEqual(read.body, created);
    const runtime = {
      image: 'node22',
      async: true,
      dependencies: { uuid: '8.3.2' },
      resolutions: {},
      timeout: 900,
      warm_concurrency: 1,
      resources: 'large',
      permissions: ['token:read'],
    };
    const newer = await createReactor(tenant, { runtime });
    assert.deepEqual(newer.runtime, runtime);
  });

  test('GET 200: lists by page, id and name; without reactor:update no value of a configuration', async () => {
    const tenant = await newTenant();
    for (const name of ['Sign', 'Settle', 'Other']) {
      await createReactor(tenant, { name, configuration: { KEY: 'sk_hidden' } });
    }
    const key = await tenant.application({ type: 'management', permissions: ['reactor:read'] });
    const listed = await sendReactor(tenant, 'GET', '?name=s*&size=1', { key });
    assert.deepEqual(listed.body.pagination.total_items, 2);
    assert.deepEqual(listed.body.data[0].name, 'Settle');
    assert.deepEqual(listed.body.data[0].configuration, { KEY: null });
    assert.doesNotMatch(listed.text, /sk_hidden/);
    const start = listed.body.pagination.next;
    const next = await sendReactor(tenant, 'GET', `?name=s*&size=1&start=${start}`, { key });
    assert.equal(next.body.data[0].name, 'Sign');
    const own = await sendReactor(tenant, 'GET', `?id=${next.body.data[0].id}`);
    assert.deepEqual(own.body.data[0].configuration, { KEY: 'sk_hidden' });
    assert.deepEqual((await sendReactor(tenant, 'GET', '?page=9')).body.data, []);
  });

  test('PUT 200 replaces, PATCH 204 merges, DELETE 204 removes', async () => {
    const tenant = await newTenant();
    const { id } = await createReactor(tenant, {
      configuration: { A: '1', B: '2' },
      allowed_hosts: ['a.example'],
    });
    const patch = { code: 'module.exports = () => ({})', configuration: { A: null, C: '3' } };
    const patched = await sendReactor(tenant, 'PATCH', `/${id}`, { body: patch });
    assert.equal(patched.status, 204, patched.text);
    const read = (await sendReactor(tenant, 'GET', `/${id}`)).body;
    assert.equal(read.code, patch.code);
    assert.deepEqual(read.configuration, { B: '2', C: '3' });
    assert.deepEqual(read.allowed_hosts, ['a.example']);
    assert.ok(read.modified_at && read.modified_by);
    const put = await sendReactor(tenant, 'PUT', `/${id}`, { body: { name: 'Put', code: echo } });
    assert.equal(put.status, 200, put.text);
    assert.deepEqual(put.body.configuration, {});
    assert.equal(put.body.allowed_hosts, undefined);
    assert.equal((await sendReactor(tenant, 'DELETE', `/${id}`)).status, 204);
    assert.equal((await sendReactor(tenant, 'GET', `/${id}`)).status, 404);
    assert.deepEqual(await tenant.rows('reactors'), []);
  });

  test('400: what is wrong is named, and a formula has a replacement', async () => {
    const tenant = await newTenant();
    for (const [given, path, message] of [
      [{ code: '' }, 'code', /1 to 50000/],
      [{ code: `//${'x'.repeat(49_999)}` }, 'code', /1 to 50000/],
      [{ formula: { id: missing } }, 'formula', /use code instead/],
      [{ runtime: { image: 'node18' } }, 'runtime.image', /node-bt, node22/],
      [{ runtime: { async: true } }, 'runtime.async', /needs the image node22/],
      [{ runtime: { timeout: 31 } }, 'runtime.timeout', /from 1 to 30/],
      [{ runtime: { timeout: 0 } }, 'runtime.timeout', /from 1 to 30/],
      [{ runtime: { image: 'node22', async: true, timeout: 901 } }, 'runtime.timeout', /1 to 900/],
      [{ runtime: { image: 'node22', warm_concurrency: 2 } }, 'runtime.warm_concurrency', /0 or 1/],
      [{ runtime: { image: 'node22', resources: 'huge' } }, 'runtime.resources', /standard/],
      [
        { runtime: { image: 'node22', permissions: ['tenant:read'] } },
        'runtime.permissions',
        /private applications/,
      ],
      [
        { runtime: { image: 'node22', dependencies: { a: '^1' } } },
        'runtime.dependencies',
        /exact/,
      ],
      [{ runtime: { unknown: 1 } }, 'runtime', /unknown attribute/],
      [{ allowed_hosts: ['a.example:443'] }, 'allowed_hosts[0]', /without a port/],
      [{ allowed_hosts: new Array(101).fill('a.example') }, 'allowed_hosts', /at most 100/],
      [{ application: { id: missing } }, 'application.id', /public or private application/],
    ] as const) {
      const body = { ...leastReactor, ...given };
      const refused = await sendReactor(tenant, 'POST', '', { body });
      assert.equal(refused.status, 400, JSON.stringify(given).slice(0, 100));
      assert.match(String(refused.body.errors[path]), message);
    }
    const image = { image: 'node22' };
    const { id } = (await tenant.send('GET', '/applications/key')).body;
    const both = { ...leastReactor, runtime: image, application: { id } };
    const refused = await sendReactor(tenant, 'POST', '', { body: both });
    assert.match(String(refused.body.errors.application), /use runtime.permissions/);
    assert.deepEqual(await tenant.rows('reactors'), []);
  });

  test('422: code that cannot be run says why, and nothing of the code', async () => {
    const tenant = await newTenant();
    for (const [given, path, message] of [
      [{ code: 'module.exports = function (' }, 'code', /does not compile/],
      [{ code: 'const a = 1' }, 'code', /must export a function/],
      [{ code: "throw new Error('MARKER')" }, 'code', /when it is loaded/],
      [{ code: "const a = require('fs'); module.exports = () => a" }, 'code', /"fs"/],
      [
        { runtime: { image: 'node22', dependencies: { axios: '1.0.0' } } },
        'runtime.dependencies',
        /axios/,
      ],
    ] as const) {
      const refused = await sendReactor(tenant, 'POST', '', {
        body: { ...leastReactor, ...given },
      });
      assert.equal(refused.status, 422, refused.text);
      assert.match(String(refused.body.errors[path]), message);
      assert.doesNotMatch(refused.text, /MARKER/);
    }
    await tenant.setQuotas({ reactor_limit: 1 });
    await createReactor(tenant);
    const more = await sendReactor(tenant, 'POST', '', { body: leastReactor });
    assert.equal(more.status, 422);
    assert.match(more.body.detail, /reactor_limit/);
  });

  test('403: nobody lends code rights that they could not make themselves a key with', async () => {
    const tenant = await newTenant();
    const { id: application } = (await tenant.send('GET', '/applications/key')).body;
    const permissions = ['reactor:create', 'reactor:update', 'reactor:read'];
    const key = await tenant.application({ type: 'management', permissions });
    const lent = { application: { id: application } };
    const own = { runtime: { image: 'node22', permissions: ['token:read'] } };
    for (const rights of [lent, own]) {
      const body = { ...leastReactor, ...rights };
      const refused = await sendReactor(tenant, 'POST', '', { key, body });
      assert.equal(refused.status, 403, refused.text);
      assert.match(refused.body.detail, /application:create/);
    }
    const { id } = await createReactor(tenant, lent);
    for (const patch of [{ code: 'module.exports = () => 1' }, { allowed_hosts: ['a.example'] }]) {
      const refused = await sendReactor(tenant, 'PATCH', `/${id}`, { key, body: patch });
      assert.equal(refused.status, 403, refused.text);
    }
    const named = await sendReactor(tenant, 'PATCH', `/${id}`, { key, body: { name: 'n' } });
    assert.equal(named.status, 204);
    const taken = { application: null, code: 'module.exports = () => ({})' };
    assert.equal((await sendReactor(tenant, 'PATCH', `/${id}`, { key, body: taken })).status, 204);
    const denied = (await tenant.logged('reactor')).filter((one) => one.endsWith('denied'));
    assert.ok(denied.includes('update denied') && denied.includes('create denied'));
  });

  test('410: formulas are removed, and the message says what takes their place', async () => {
    const tenant = await newTenant();
    const key = tenant.managementKey;
    for (const [method, path] of [
      ['GET', ''],
      ['POST', ''],
      ['GET', `/${missing}`],
      ['PUT', `/${missing}`],
      ['DELETE', `/${missing}`],
    ] as const) {
      const body = method === 'POST' || method === 'PUT' ? { body: { name: 'f' } } : {};
      const gone = await tenant.send(method, `/reactor-formulas${path}`, { key, ...body });
      assert.equal(gone.status, 410, gone.text);
      assert.match(gone.body.detail, /PATCH \/reactors\/\{id\}/);
    }
  });

  test('code and configuration are sealed, and an altered reactor is refused', async () => {
    const tenant = await newTenant();
    const code = "module.exports = () => ({ raw: 'MARKER' })";
    const { id } = await createReactor(tenant, { code, configuration: { KEY: 'MARKER' } });
    const [row] = await tenant.rows('reactors');
    assert.ok(row && !Buffer.from(row.body).includes('MARKER'));
    const { place } = tenant.vault;
    await engine.run(place, `update reactors set name = 'x' where reactor_id = '${id}'`);
    const key = await invoker(tenant);
    assert.equal((await sendReactor(tenant, 'GET', `/${id}`)).status, 500);
    const called = await tenant.send('POST', `/reactors/${id}/react`, { key });
    assert.equal(called.body.type, 'urn:strongroom:problem:integrity');
    assert.equal((await sendReactor(tenant, 'DELETE', `/${id}`)).status, 204);
  });

  test('STRONGROOM_REACTORS=off: 403 on every write and call, which says so; reading stays', async (t) => {
    const place = await engine.place(t);
    const on = await startVault(t, engine, { place });
    const tenant = await newTenantOf(on);
    const { id } = await createReactor(tenant);
    const key = await invoker(tenant);
    await on.stop();
    const off = await startVault(t, engine, { place, environment: { STRONGROOM_REACTORS: 'off' } });
    const manage = tenant.managementKey;
    for (const [method, path, sent] of [
      ['POST', '/reactors', { key: manage, body: leastReactor }],
      ['PUT', `/reactors/${id}`, { key: manage, body: leastReactor }],
      ['PATCH', `/reactors/${id}`, { key: manage, body: { name: 'n' } }],
      ['POST', `/reactors/${id}/react`, { key, body: {} }],
      ['POST', `/reactors/${id}/react-async`, { key, body: {} }],
      [
        'POST',
        '/proxies',
        {
          key: manage,
          body: {
            name: 'p',
            destination_url: 'https://a.example',
            request_transforms: [{ code: echo }],
          },
        },
      ],
    ] as const) {
      const refused = await off.send(method, path, sent);
      assert.equal(refused.status, 403, `${method} ${path} ${refused.text}`);
      assert.match(refused.body.detail, /STRONGROOM_REACTORS=off/);
    }
    assert.equal((await off.send('GET', `/reactors/${id}`, { key: manage })).status, 200);
    assert.equal((await off.send('DELETE', `/reactors/${id}`, { key: manage })).status, 204);
  });

  test('STRONGROOM_REACTOR_MODULES: code can require what the operator bundled', async (t) => {
    const directory = temporaryDirectory(t);
    writeFileSync(join(directory, 'left-pad.js'), 'module.exports = (a, n) => a.padStart(n);');
    mkdirSync(join(directory, '@own'));
    writeFileSync(join(directory, '@own/b.js'), 'exports.two = 2;');
    const environment = { STRONGROOM_REACTOR_MODULES: directory };
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenantOf(vault);
    const code = `const pad = require('left-pad');
      module.exports = () => ({ raw: pad('x', require('@own/b').two) })`;
    const { id } = await createReactor(tenant, { code });
    const key = await invoker(tenant);
    const called = await tenant.send('POST', `/reactors/${id}/react`, { key });
    assert.deepEqual(called.body, { raw: ' x' }, called.text);
  });
});
