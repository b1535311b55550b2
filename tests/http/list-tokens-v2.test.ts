/** GET /v2/tokens: pages by cursor, filters in any combination. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { tokenGroupsMax } from '../../src/tokens/search/choose-index.ts';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const number = '4242424242424242';

/** Ids of all pages, and the number of pages. */
async function walk(tenant: TestTenant, query: string, key = tenant.key) {
  const ids: string[] = [];
  let pages = 0;
  for (let start = ''; ; ) {
    const list = await tenant.send('GET', `/v2/tokens?${query}${start}`, { key });
    assert.equal(list.status, 200, list.text);
    ids.push(...list.body.data.map((token: { id: string }) => token.id));
    pages += 1;
    const { next } = list.body.pagination;
    if (next === undefined) return { ids, pages };
    start = `&start=${next}`;
  }
}

async function mixed(tenant: TestTenant): Promise<void> {
  const bodies = [
    { id: 'c-1', type: 'card_number', data: number, metadata: { k: 'A' } },
    { id: 'g-1', type: 'token', data: 'one', metadata: { k: 'A' } },
    { id: 'c-2', type: 'card_number', data: number, containers: ['/pci/low/'] },
    { id: 'g-2', type: 'token', data: 'two', metadata: { k: 'a' } },
    { id: 'c-3', type: 'token', data: 'x', containers: ['/PCI/high/eu/'], metadata: { k: 'a' } },
    { id: 'p-1', type: 'token', data: 'y', containers: ['/pcix/'] },
  ];
  for (const body of bodies) {
    await tenant.token(body);
    tenant.vault.clock.advance(1);
  }
}

onBothEngines('GET /v2/tokens', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: every token once along the cursors, newest first, next only where more follow', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const newest = ['p-1', 'c-3', 'g-2', 'c-2', 'g-1', 'c-1'];
    assert.deepEqual(await walk(tenant, 'size=1'), { ids: newest, pages: 6 });
    assert.deepEqual(await walk(tenant, 'size=2'), { ids: newest, pages: 3 });
    assert.deepEqual(await walk(tenant, 'size=100'), { ids: newest, pages: 1 });
    const none = await tenant.send('GET', '/v2/tokens?size=0');
    assert.deepEqual(none.body, { pagination: { page_size: 0 }, data: [] });
    const sized = await tenant.send('GET', '/v2/tokens?size=4');
    assert.equal(sized.body.pagination.page_size, 4);
  });

  test('200: container with all below it, type, fingerprint and metadata, in any combination', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const { fingerprint } = (await tenant.send('GET', '/tokens/c-1')).body;
    const queries: Record<string, string[]> = {
      'container=/pci/': ['c-3', 'c-2', 'c-1'],
      'container=/PCI/High/': ['c-3', 'c-1'],
      'container=/': ['p-1', 'c-3', 'g-2', 'c-2', 'g-1', 'c-1'],
      'container=/nothing/': [],
      'type=card_number': ['c-2', 'c-1'],
      'type=token': ['p-1', 'c-3', 'g-2', 'g-1'],
      'type=bank': [],
      'container=/pci/&type=token': ['c-3'],
      [`fingerprint=${fingerprint}`]: ['c-2', 'c-1'],
      [`fingerprint=${fingerprint}&container=/pci/low/`]: ['c-2'],
      'fingerprint=abc': [],
      'metadata.k=A': ['g-1', 'c-1'],
      'metadata.k=a': ['c-3', 'g-2'],
      'metadata.K=a': [],
      'metadata[k]=a&container=/pci/': ['c-3'],
      'metadata.k=a&type=token&container=/general/': ['g-2'],
    };
    for (const [query, ids] of Object.entries(queries)) {
      assert.deepEqual((await walk(tenant, `${query}&size=1`)).ids, ids, query);
    }
  });

  test('200: without a container, whatever the caller may read, and nothing else', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const rule = (priority: number, container: string, transform: string) => ({
      priority,
      container,
      permissions: ['token:read'],
      transform,
    });
    const key = await tenant.application({
      rules: [rule(1, '/pci/low/', 'reveal'), rule(2, '/general/', 'redact')],
    });
    assert.deepEqual((await walk(tenant, 'size=1', key)).ids, ['g-2', 'c-2', 'g-1']);
    assert.deepEqual((await walk(tenant, 'type=token', key)).ids, ['g-2', 'g-1']);
    const list = await tenant.send('GET', '/v2/tokens', { key });
    assert.deepEqual(
      list.body.data.map((token: { data?: unknown }) => token.data),
      [undefined, number, undefined],
    );
  });

  test('200: more containers and types than are walked side by side', async () => {
    const tenant = await tenants();
    const count = tokenGroupsMax + 6;
    for (let index = 0; index < count; index += 1) {
      const containers = [`/m/${index}/`];
      await tenant.token({ id: `m-${index}`, type: 'token', data: index, containers });
    }
    await mixed(tenant);
    assert.equal((await walk(tenant, 'container=/m/&size=50')).ids.length, count);
    assert.deepEqual((await walk(tenant, 'type=card_number')).ids, ['c-2', 'c-1']);
    const key = await tenant.holder({ container: '/m/' });
    assert.equal((await walk(tenant, 'size=50', key)).ids.length, count);
    assert.deepEqual((await walk(tenant, 'container=/m/7/', key)).ids, ['m-7']);
  });

  test('200: by id, repeated, together with other filters', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const queries: Record<string, string[]> = {
      'id=c-1': ['c-1'],
      'id=c-1&id=g-2&id=none': ['g-2', 'c-1'],
      'id=c-1&id=g-2&type=token': ['g-2'],
      'id=none': [],
      'id=%00': [],
    };
    for (const [query, ids] of Object.entries(queries)) {
      assert.deepEqual((await walk(tenant, `${query}&size=1`)).ids, ids, query);
    }
    const key = await tenant.holder({ container: '/general/', permissions: ['token:read'] });
    assert.deepEqual((await walk(tenant, 'id=c-1&id=g-1', key)).ids, ['g-1']);
    const { next } = (await tenant.send('GET', '/v2/tokens?id=c-1&id=g-1&size=1')).body.pagination;
    const other = await tenant.send('GET', `/v2/tokens?id=c-2&size=1&start=${next}`);
    assert.deepEqual(Object.keys(other.body.errors), ['start']);
  });

  test('200: a page by its number; one past the end is empty, and a cursor takes its place', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const page = async (query: string) => {
      const { body } = await tenant.send('GET', `/v2/tokens?${query}`);
      return { ...body, data: body.data.map((token: { id: string }) => token.id) };
    };
    const first = await page('size=4&page=1');
    assert.deepEqual(first.data, ['p-1', 'c-3', 'g-2', 'c-2']);
    assert.equal(first.pagination.page_number, 1);
    const last = await page('size=4&page=2');
    assert.deepEqual(last, {
      pagination: { page_size: 4, page_number: 2 },
      data: ['g-1', 'c-1'],
    });
    assert.deepEqual((await page('type=token&size=1&page=3')).data, ['g-2']);
    for (const number of [3, 2_147_483_647]) {
      const past = await page(`size=4&page=${number}`);
      assert.deepEqual(past, { pagination: { page_size: 4, page_number: number }, data: [] });
    }
    const byCursor = await page(`size=4&page=7&start=${first.pagination.next}`);
    assert.deepEqual(byCursor, { pagination: { page_size: 4 }, data: ['g-1', 'c-1'] });
  });

  test('200: the cursor of the longest id', async () => {
    const tenant = await tenants();
    const id = '\u{65e5}'.repeat(400);
    await tenant.token({ id: 'older', type: 'token', data: 1 });
    tenant.vault.clock.advance(1);
    await tenant.token({ id, type: 'token', data: 1 });
    assert.deepEqual((await walk(tenant, 'size=1')).ids, [id, 'older']);
  });

  test('400: a bad container, type, fingerprint or size, or the cursor of another question', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const { next } = (await tenant.send('GET', '/v2/tokens?size=1')).body.pagination;
    const bad: Record<string, string> = {
      'container=pci': 'container',
      'container=/a//b/': 'container',
      'container=/a/&container=/b/': 'container',
      'type=crad': 'type',
      'fingerprint=a%00b': 'fingerprint',
      'size=1000': 'size',
      'page=0': 'page',
      'page=x': 'page',
      [`id=a${'&id=b'.repeat(1000)}`]: 'id',
      [`start=${next}&type=token`]: 'start',
      [`start=${'A'.repeat(1701)}`]: 'start',
    };
    for (const [query, name] of Object.entries(bad)) {
      const answer = await tenant.send('GET', `/v2/tokens?${query}`);
      assert.equal(answer.status, 400, query);
      assert.deepEqual(Object.keys(answer.body.errors), [name], query);
    }
  });

  test('403: a container on which token:read is not held; logged as denied', async () => {
    const tenant = await tenants();
    await mixed(tenant);
    const key = await tenant.holder({ container: '/pci/high/', permissions: ['token:read'] });
    for (const container of ['/', '/pci/', '/general/', '/nothing/']) {
      const answer = await tenant.send('GET', `/v2/tokens?container=${container}`, { key });
      assert.equal(answer.status, 403, container);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    assert.equal(
      (await tenant.send('GET', '/v2/tokens?container=/pci/high/', { key })).status,
      200,
    );
    const denied = (await tenant.logged()).filter((operation) => operation === 'read denied');
    assert.equal(denied.length, 4);
  });
});
