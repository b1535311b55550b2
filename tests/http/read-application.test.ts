/** GET /applications, /applications/{id} and /applications/key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('reading applications', (engine) => {
  const newTenant = tenantsOf(engine);

  const create = async (tenant: TestTenant, body: Readonly<Record<string, unknown>>) => {
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { type: 'private', permissions: ['token:create'], ...body },
    });
    assert.equal(created.status, 201, created.text);
    return created.body;
  };
  const get = (tenant: TestTenant, path: string) =>
    tenant.send('GET', path, { key: tenant.managementKey });

  test('200: an application is as it was created, without the text of its key', async () => {
    const tenant = await newTenant();
    const rules = [
      { priority: 2, container: '/PCI/', permissions: ['token:read'], transform: 'mask' },
    ];
    const { key, keys, ...created } = await create(tenant, { name: 'reader', rules });
    const read = await get(tenant, `/applications/${created.id.toUpperCase()}`);
    assert.equal(read.status, 200);
    const { key: text, ...shown } = keys[0];
    assert.equal(text, key);
    assert.deepEqual(read.body, { ...created, keys: [shown] });
    assert.deepEqual(read.body.rules, [{ ...rules[0], container: '/pci/' }]);
    assert.ok(!read.text.includes(key));
    assert.ok((await tenant.logged('application')).includes('read'));
  });

  test('200: the application of the calling key, whatever it may do', async () => {
    const tenant = await newTenant();
    const { key, id } = await create(tenant, { name: 'narrow', type: 'public' });
    const own = await tenant.send('GET', '/applications/key', { key });
    assert.equal(own.status, 200);
    assert.equal(own.body.id, id);
    assert.ok(!own.text.includes(key));
    const slash = await tenant.send('GET', '/applications/key/', { key });
    assert.equal(slash.body.id, id);
  });

  test('200: the list is newest first, by pages and by cursor, and ends with an empty page', async () => {
    const tenant = await newTenant();
    tenant.vault.clock.advance(1);
    for (const name of ['a', 'b', 'c']) await create(tenant, { name });
    const all = await get(tenant, '/applications');
    assert.equal(all.status, 200);
    const names = all.body.data.map((one: { name: string }) => one.name);
    assert.deepEqual(names.slice(0, 3).sort(), ['a', 'b', 'c']);
    assert.equal(all.body.pagination.total_items, 5);
    const times = all.body.data.map((one: { created_at: string }) => one.created_at);
    assert.deepEqual(times, times.toSorted().reverse());

    const paged: string[] = [];
    for (let page = 1; ; page++) {
      const { body } = await get(tenant, `/applications?size=2&page=${page}`);
      const { next: _next, ...pagination } = body.pagination;
      const expected = { total_items: 5, page_number: page, page_size: 2, total_pages: 3 };
      assert.deepEqual(pagination, expected);
      if (body.data.length === 0) break;
      paged.push(...body.data.map((one: { name: string }) => one.name));
    }
    assert.deepEqual(paged, names);

    const followed: string[] = [];
    for (let next: string | undefined = ''; next !== undefined; ) {
      const { body } = await get(tenant, `/applications?size=2${next && `&start=${next}`}`);
      followed.push(...body.data.map((one: { name: string }) => one.name));
      next = body.pagination.next;
    }
    assert.deepEqual(followed, names);
  });

  test('200: a list of size 0 counts and shows nothing', async () => {
    const tenant = await newTenant();
    const { body } = await get(tenant, '/applications?size=0');
    assert.deepEqual(body, {
      pagination: { total_items: 2, page_number: 1, page_size: 0, total_pages: 0 },
      data: [],
    });
  });

  test('200: filters by ids, names, and types; an id that is none finds nothing', async () => {
    const tenant = await newTenant();
    const a = await create(tenant, { name: 'a', type: 'public' });
    const b = await create(tenant, { name: 'b' });
    const found = async (query: string) => {
      const { status, body } = await get(tenant, `/applications?${query}`);
      assert.equal(status, 200);
      assert.equal(body.pagination.total_items, body.data.length);
      return body.data.map((one: { id: string }) => one.id).sort();
    };
    assert.deepEqual(await found(`id=${a.id}&id=${b.id}`), [a.id, b.id].sort());
    assert.deepEqual(await found('type=public'), [a.id]);
    assert.deepEqual(await found(`type=public&type=private&id=${b.id}`), [b.id]);
    assert.deepEqual(await found(`id=${missing}`), []);
    assert.deepEqual(await found('id=none'), []);
    assert.deepEqual(await found('name=A'), [a.id]);
    assert.deepEqual(await found('name=*&type=public'), [a.id]);
    assert.deepEqual(await found(`name=b*&id=${b.id}&id=${a.id}`), [b.id]);
    assert.deepEqual(await found('name=%25'), []);
  });

  test('400: a page, size, type or cursor that is none, and an unknown parameter', async () => {
    const tenant = await newTenant();
    const foreign = await newTenant();
    const { body } = await get(foreign, '/applications?size=1');
    const cursor = body.pagination.next;
    for (const [query, attribute] of [
      ['page=0', 'page'],
      ['size=101', 'size'],
      ['size=x', 'size'],
      ['type=elements', 'type[0]'],
      ['start=abc', 'start'],
      [`start=${cursor}`, 'start'],
      ['nmae=x', 'nmae'],
    ] as const) {
      const answer = await get(tenant, `/applications?${query}`);
      assert.equal(answer.status, 400, query);
      assert.deepEqual(Object.keys(answer.body.errors), [attribute]);
    }
  });

  test('401: without a key', async () => {
    const tenant = await newTenant();
    for (const path of ['/applications', '/applications/key', `/applications/${missing}`]) {
      assert.equal((await tenant.vault.send('GET', path)).status, 401);
    }
  });

  test('403: without application:read, and the refusal is in the log', async () => {
    const tenant = await newTenant();
    for (const path of ['/applications', `/applications/${missing}`]) {
      const refused = await tenant.send('GET', path);
      assert.equal(refused.status, 403);
      assert.match(refused.body.detail, /application:read/);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    const denied = (await tenant.logged('application')).filter((one) => one === 'read denied');
    assert.equal(denied.length, 2);
  });

  test('404: missing, malformed and of another tenant alike', async () => {
    const tenant = await newTenant();
    const foreign = await create(await newTenant(), { name: 'foreign' });
    const answers = [];
    for (const id of [missing, 'none', foreign.id])
      answers.push(await get(tenant, `/applications/${id}`));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [404, 404, 404],
    );
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  });
});
