/** PATCH /proxies/{id}, and GET /proxies. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { writeCertificate } from '../support/certificate.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, leastProxy, sendProxy } from '../support/proxies.ts';
import { publicEnvironment } from '../support/proxy-calls.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('patching and listing proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment: publicEnvironment });

  const patch = (tenant: TestTenant, id: string, body: unknown) =>
    sendProxy(tenant, 'PATCH', `/${id}`, { body });

  test('PATCH 204: what is given is merged, null removes, and all else stays', async (t) => {
    const tenant = await newTenant();
    const { cert, keyFile } = writeCertificate(temporaryDirectory(t));
    const before = await createProxy(tenant, {
      configuration: { A: '1', B: '2' },
      timeout: 3,
      require_auth: false,
      allowed_methods: ['GET'],
      client_certificate: cert,
      client_key: readFileSync(keyFile, 'utf8'),
    });
    await tenant.giveHosts('patched.example.com');
    const changed = await patch(tenant, before.id, {
      configuration: { A: null, B: '3', C: '4', D: null },
      timeout: null,
      name: 'Other',
      allowed_methods: null,
      proxy_host: 'patched.example.com',
    });
    assert.equal(changed.status, 204);
    assert.equal(changed.text, '');
    const read = (await sendProxy(tenant, 'GET', `/${before.id}`)).body;
    const { modified_at, modified_by, ...rest } = read;
    assert.ok(modified_at && modified_by);
    const { allowed_methods: _methods, ...kept } = before;
    assert.deepEqual(rest, {
      ...kept,
      name: 'Other',
      configuration: { B: '3', C: '4' },
      timeout: 25,
      proxy_host: 'patched.example.com',
    });
    const removal = { configuration: null, client_certificate: null, client_key: null };
    assert.equal((await patch(tenant, before.id, removal)).status, 204);
    const after = (await sendProxy(tenant, 'GET', `/${before.id}`)).body;
    assert.deepEqual(after.configuration, {});
    assert.equal('client_certificate' in after, false);
    assert.deepEqual(await tenant.logged('proxy'), ['create', 'read', 'read', 'update', 'update']);
  });

  test('PATCH 204: concurrent patches of one proxy all take effect', async () => {
    const tenant = await newTenant();
    const { id } = await createProxy(tenant);
    const names = ['A', 'B', 'C', 'D', 'E'];
    const answers = await Promise.all(
      names.map((name) => patch(tenant, id, { configuration: { [name]: 'x' } })),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([204]));
    const { configuration } = (await sendProxy(tenant, 'GET', `/${id}`)).body;
    assert.deepEqual(Object.keys(configuration).sort(), names);
  });

  test('PATCH 400: what it leads to is checked as a whole, and nothing changes', async (t) => {
    const tenant = await newTenant();
    const entries = Object.fromEntries(Array.from({ length: 25 }, (_, at) => [`n${at}`, 'x']));
    const { id } = await createProxy(tenant, { configuration: entries });
    const { cert } = writeCertificate(temporaryDirectory(t));
    for (const [body, path] of [
      [{ name: null }, 'name'],
      [{ destination_url: null }, 'destination_url'],
      [{ configuration: { more: 'x' } }, 'configuration'],
      [{ client_certificate: cert }, 'client_key'],
      [{ timeout: 0 }, 'timeout'],
      [{ key: 'x' }, 'key'],
      [{ application: { id: missing } }, 'application.id'],
      [[], 'body'],
    ] as const) {
      const refused = await patch(tenant, id, body);
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), [path]);
    }
    assert.equal((await tenant.rows('proxies'))[0]?.version, 1);
  });

  test('PATCH 415: any other media type', async () => {
    const tenant = await newTenant();
    const { id } = await createProxy(tenant);
    for (const type of ['application/json', 'text/plain']) {
      const sent = { key: tenant.managementKey, body: '{}', headers: { 'content-type': type } };
      assert.equal((await tenant.send('PATCH', `/proxies/${id}`, sent)).status, 415);
    }
  });

  test('GET 200: newest first, by pages and by cursor, and past the end an empty page', async () => {
    const tenant = await newTenant();
    for (const name of ['a', 'b', 'c']) {
      await createProxy(tenant, { name });
      tenant.vault.clock.advance(1);
    }
    const all = await sendProxy(tenant, 'GET', '');
    assert.equal(all.status, 200);
    const names = all.body.data.map((one: { name: string }) => one.name);
    assert.deepEqual(names, ['c', 'b', 'a']);
    const first = await sendProxy(tenant, 'GET', '?size=2');
    const { next, ...pagination } = first.body.pagination;
    const expected = { total_items: 3, page_number: 1, page_size: 2, total_pages: 2 };
    assert.deepEqual(pagination, expected);
    for (const query of ['?size=2&page=2', `?size=2&start=${next}`]) {
      const { body } = await sendProxy(tenant, 'GET', query);
      assert.deepEqual(body.data, [all.body.data[2]]);
      assert.equal(body.pagination.next, undefined);
    }
    const past = await sendProxy(tenant, 'GET', '?page=9');
    assert.deepEqual([past.status, past.body.data], [200, []]);
    const none = await sendProxy(tenant, 'GET', '?size=0');
    assert.deepEqual([none.body.data, none.body.pagination.total_items], [[], 3]);
  });

  test('GET 200: filters by ids and by name with wildcards, whatever the case', async () => {
    const tenant = await newTenant();
    const made = new Map<string, string>();
    for (const name of ['Charge cards', 'charge 100%', 'Refund_1', 'Refundx1', 'back\\slash']) {
      made.set(name, (await createProxy(tenant, { name })).id);
    }
    const foreign = await createProxy(await newTenant());
    const found = async (query: string) => {
      const { status, body } = await sendProxy(tenant, 'GET', `?${query}`);
      assert.equal(status, 200);
      assert.equal(body.pagination.total_items, body.data.length);
      return body.data.map((one: { name: string }) => one.name).sort();
    };
    const byName = (name: string) => found(`name=${encodeURIComponent(name)}`);
    assert.deepEqual(await byName('charge*'), ['Charge cards', 'charge 100%']);
    assert.deepEqual(await byName('*CARDS'), ['Charge cards']);
    assert.deepEqual(await byName('charge'), []);
    assert.deepEqual(await byName('refund_1'), ['Refund_1']);
    assert.deepEqual(await byName('*%'), ['charge 100%']);
    assert.deepEqual(await byName('back\\*'), ['back\\slash']);
    assert.equal((await byName('**')).length, 5);
    const [one, two] = [made.get('Refund_1'), made.get('Refundx1')];
    assert.deepEqual(await found(`id=${one}&id=${two}`), ['Refund_1', 'Refundx1']);
    assert.deepEqual(await found(`id=${one}&id=${two}&name=*x*`), ['Refundx1']);
    assert.deepEqual(await found(`id=${foreign.id}&id=${missing}&id=none`), []);
  });

  test('GET 400: a page, size or cursor that is none, and an unknown parameter', async () => {
    const tenant = await newTenant();
    const list = await tenant.send('GET', '/applications?size=1', { key: tenant.managementKey });
    for (const [query, attribute] of [
      ['page=0', 'page'],
      ['size=101', 'size'],
      ['start=abc', 'start'],
      [`start=${list.body.pagination.next}`, 'start'],
      [`name=${'x'.repeat(201)}`, 'name'],
      ['nmae=x', 'nmae'],
    ] as const) {
      const refused = await sendProxy(tenant, 'GET', `?${query}`);
      assert.equal(refused.status, 400, query);
      assert.deepEqual(Object.keys(refused.body.errors), [attribute]);
    }
  });

  test('a replayed creation shows the configuration only to who may still see it', async () => {
    const tenant = await newTenant();
    const permissions = ['proxy:create', 'proxy:update'];
    const key = await tenant.application({ type: 'management', permissions });
    const { id } = (await tenant.send('GET', '/applications/key', { key })).body;
    const sent = {
      key,
      body: { ...leastProxy, configuration: { API_KEY: 'sk_hidden' } },
      headers: { 'svc-idempotency-key': 'once' },
    };
    const first = await tenant.send('POST', '/proxies', sent);
    assert.deepEqual(first.body.configuration, { API_KEY: 'sk_hidden' });
    assert.deepEqual((await tenant.send('POST', '/proxies', sent)).body, first.body);
    const narrowed = { name: 'narrowed', permissions: ['proxy:create'] };
    const put = { key: tenant.managementKey, body: narrowed };
    assert.equal((await tenant.send('PUT', `/applications/${id}`, put)).status, 200);
    const replayed = await tenant.send('POST', '/proxies', sent);
    assert.equal(replayed.status, 201);
    assert.deepEqual(replayed.body, { ...first.body, configuration: { API_KEY: null } });
  });
});
