/** GET /tokens: pages with exact totals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

/** Tokens `t-0` to `t-n`, one millisecond apart. */
async function tokens(tenant: TestTenant, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const metadata = { Kind: index % 2 === 0 ? 'Even' : 'odd', number: String(index) };
    await tenant.token({ id: `t-${index}`, type: 'token', data: `value ${index}`, metadata });
    tenant.vault.clock.advance(1);
  }
}

const idsOf = (answer: { body: { data: { id: string }[] } }) =>
  answer.body.data.map(({ id }) => id);

onBothEngines('GET /tokens', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: newest first, visible as soon as the create is answered', async () => {
    const tenant = await tenants();
    await tokens(tenant, 3);
    const list = await tenant.send('GET', '/tokens');
    assert.equal(list.status, 200);
    assert.deepEqual(idsOf(list), ['t-2', 't-1', 't-0']);
    assert.equal(list.body.data[0].data, 'value 2');
    assert.deepEqual(list.body.pagination, {
      total_items: 3,
      page_number: 1,
      page_size: 20,
      total_pages: 1,
    });
  });

  test('200: pages of a size, one past the end is empty, size 0 gives only the totals', async () => {
    const tenant = await tenants();
    await tokens(tenant, 5);
    const second = await tenant.send('GET', '/tokens?size=2&page=2');
    assert.deepEqual(idsOf(second), ['t-2', 't-1']);
    assert.equal(second.body.pagination.total_pages, 3);
    assert.equal(second.body.pagination.page_number, 2);
    const last = await tenant.send('GET', '/tokens?size=2&page=3');
    assert.deepEqual(idsOf(last), ['t-0']);
    assert.equal(last.body.pagination.next, undefined);
    const past = await tenant.send('GET', '/tokens?size=2&page=2147483647');
    assert.deepEqual([past.status, past.body.data], [200, []]);
    assert.equal(past.body.pagination.total_items, 5);
    const none = await tenant.send('GET', '/tokens?size=0');
    assert.deepEqual([none.body.data, none.body.pagination.total_items], [[], 5]);
  });

  test('200: the cursor of a page leads to the next one, whatever came meanwhile', async () => {
    const tenant = await tenants();
    await tokens(tenant, 5);
    const first = await tenant.send('GET', '/tokens?size=2');
    await tenant.token({ id: 'late', type: 'token', data: 1 });
    const { next } = first.body.pagination;
    const second = await tenant.send('GET', `/tokens?size=2&start=${next}`);
    assert.deepEqual(idsOf(second), ['t-2', 't-1']);
    assert.equal(second.body.pagination.page_number, 2);
    assert.equal(second.body.pagination.total_items, 6);
  });

  test('200: ids, repeated or alone; what is no id of a token selects nothing', async () => {
    const tenant = await tenants();
    await tokens(tenant, 3);
    const unusual = 'ä “ \u{10ffff} 日本';
    await tenant.token({ id: unusual, type: 'token', data: 1 });
    const list = await tenant.send('GET', '/tokens?id=t-0&id=t-2&id=missing');
    assert.deepEqual(idsOf(list), ['t-2', 't-0']);
    assert.equal(list.body.pagination.total_items, 2);
    const one = await tenant.send('GET', `/tokens?id=${encodeURIComponent(unusual)}`);
    assert.deepEqual(idsOf(one), [unusual]);
    for (const id of ['x', '%00%00%00', 'a%23b', '%F0%9F%92']) {
      const none = await tenant.send('GET', `/tokens?id=${id}`);
      assert.deepEqual([none.status, none.body.data], [200, []], id);
    }
  });

  test('200: metadata in the three encodings, without regard to case, all of it', async () => {
    const tenant = await tenants();
    await tokens(tenant, 4);
    const json = encodeURIComponent(JSON.stringify({ kind: 'ODD', number: '1' }));
    const queries: Record<string, string[]> = {
      'metadata.Kind=Even': ['t-2', 't-0'],
      'metadata.kind=EVEN': ['t-2', 't-0'],
      'metadata[KIND]=even': ['t-2', 't-0'],
      'metadata%5Bkind%5D=even': ['t-2', 't-0'],
      'metadata.kind=even&metadata.number=2': ['t-2'],
      [`metadata=${json}`]: ['t-1'],
      'metadata.kind=odd&metadata.kind=even': ['t-3', 't-1'],
      'metadata.kind=eve': [],
      'metadata.kind=': [],
      'metadata.other=even': [],
      'metadata.number=3&id=t-3&id=t-1': ['t-3'],
    };
    for (const [query, ids] of Object.entries(queries)) {
      const list = await tenant.send('GET', `/tokens?${query}`);
      assert.deepEqual(idsOf(list), ids, query);
      assert.equal(list.body.pagination.total_items, ids.length, query);
    }
  });

  test('200: keys of metadata with dots, quotes, line breaks and other scripts', async () => {
    const tenant = await tenants();
    const metadata = {
      'a.b': '1',
      'say "x"': 'y"z',
      ключ: 'Значение',
      '[k]': 'v',
      '\n\u2028b': 'c',
    };
    const created = await tenant.token({ id: 'odd keys', type: 'token', data: 1, metadata });
    assert.deepEqual(created.body.metadata, metadata);
    for (const [key, value] of Object.entries(metadata)) {
      for (const version of ['', '/v2']) {
        const query = `metadata.${encodeURIComponent(key)}=${encodeURIComponent(value)}`;
        for (const form of [query, query.replace(/\.([^=]*)/, '[$1]')]) {
          const list = await tenant.send('GET', `${version}/tokens?${form}`);
          assert.deepEqual(idsOf(list), ['odd keys'], form);
        }
      }
    }
    assert.equal((await tenant.send('GET', '/tokens?metadata.КЛЮЧ=зНАЧЕНИЕ')).body.data.length, 1);
  });

  test('200: metadata that changes is found as it is', async () => {
    const tenant = await tenants();
    await tokens(tenant, 1);
    const patched = await tenant.send('PATCH', '/tokens/t-0', {
      body: { metadata: { Kind: 'new', number: null } },
    });
    assert.equal(patched.status, 200);
    const found = async (query: string) => idsOf(await tenant.send('GET', `/tokens?${query}`));
    assert.deepEqual(await found('metadata.kind=new'), ['t-0']);
    assert.deepEqual(await found('metadata.kind=even'), []);
    assert.deepEqual(await found('metadata.number=0'), []);
    await tenant.send('DELETE', '/tokens/t-0');
    assert.deepEqual(await found('metadata.kind=new'), []);
    assert.deepEqual(await tenant.rows('search_terms'), []);
  });

  test('200: totals count what the caller may see, and nothing else leaves the vault', async () => {
    const tenant = await tenants();
    await tokens(tenant, 3);
    const card = { type: 'card_number', data: '4242424242424242' };
    await tenant.token({ ...card, id: 'c-1' });
    await tenant.token({ ...card, id: 'c-2', containers: ['/pci/low/'] });
    const key = await tenant.application({
      rules: [
        { priority: 1, container: '/pci/high/', permissions: ['token:read'], transform: 'mask' },
        { priority: 2, container: '/pci/', permissions: ['token:read'], transform: 'reveal' },
      ],
    });
    const list = await tenant.send('GET', '/tokens', { key });
    const shown = list.body.data.map(({ id, data }: Record<string, unknown>) => [id, data]);
    assert.deepEqual(shown, [
      ['c-2', '4242424242424242'],
      ['c-1', 'XXXXXXXXXXXX4242'],
    ]);
    assert.equal(list.body.pagination.total_items, 2);
  });

  test('200: expired tokens are gone from lists and totals', async () => {
    const tenant = await tenants();
    await tokens(tenant, 1);
    const expires_at = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    await tenant.token({ id: 'mortal', type: 'token', data: 1, expires_at });
    assert.equal((await tenant.send('GET', '/tokens')).body.pagination.total_items, 2);
    tenant.vault.clock.advance(61_000);
    const list = await tenant.send('GET', '/tokens');
    assert.deepEqual([idsOf(list), list.body.pagination.total_items], [['t-0'], 1]);
    assert.deepEqual(idsOf(await tenant.send('GET', '/tokens?id=mortal')), []);
  });

  test('200: the log says who listed, and which tokens were shown with their data', async () => {
    const tenant = await tenants();
    await tokens(tenant, 2);
    const before = await tenant.counts();
    await tenant.send('GET', '/tokens?size=1');
    const told = (await tenant.rows('logs'))
      .filter(({ operation }) => ['list', 'read'].includes(operation))
      .map(({ operation, entity_id }) => `${operation} ${entity_id}`);
    assert.deepEqual(told.sort(), [`list ${tenant.id}`, 'read t-1']);
    assert.deepEqual(await tenant.counts(), { ...before, logs: (before['logs'] ?? 0) + 2 });
    const key = await tenant.holder({ transform: 'redact' });
    const list = await tenant.send('GET', '/tokens', { key });
    assert.deepEqual(Object.hasOwn(list.body.data[0], 'data'), false);
    const reads = (await tenant.logged()).filter((operation) => operation === 'read');
    assert.equal(reads.length, 1);
  });

  test('400: a bad page, size, cursor, metadata or unknown parameter is named', async () => {
    const tenant = await tenants();
    await tokens(tenant, 3);
    const { next } = (await tenant.send('GET', '/tokens?size=1')).body.pagination;
    const bad: Record<string, string> = {
      'page=0': 'page',
      'page=1.5': 'page',
      'page=x': 'page',
      'size=101': 'size',
      'size=-1': 'size',
      'start=AAAA': 'start',
      [`start=${next}x`]: 'start',
      [`start=${next}&metadata.kind=even`]: 'start',
      'metadata=x': 'metadata',
      'metadata=%5B%5D': 'metadata',
      'metadata=%7B%22k%22%3A1%7D': 'metadata',
      'metadata.=x': 'metadata.',
      [Array.from({ length: 51 }, (_, index) => `metadata.k${index}=v`).join('&')]: 'metadata',
      'type=card': 'type',
      'Page=1': 'Page',
    };
    for (const [query, name] of Object.entries(bad)) {
      const answer = await tenant.send('GET', `/tokens?${query}`);
      assert.equal(answer.status, 400, query);
      assert.deepEqual(Object.keys(answer.body.errors), [name], query);
    }
    const other = await tenant.send('GET', `/v2/tokens?size=1&start=${next}`);
    assert.deepEqual([other.status, Object.keys(other.body.errors)], [400, ['start']]);
    const stranger = await tenants();
    assert.equal((await stranger.send('GET', `/tokens?start=${next}`)).status, 400);
  });

  test('401, 403: without a key, without the permission', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.vault.send('GET', '/tokens')).status, 401);
    const key = await tenant.application({ permissions: ['token:search'] });
    assert.equal((await tenant.send('GET', '/tokens', { key })).status, 403);
    assert.deepEqual(await tenant.logged(), ['read denied']);
  });
});
