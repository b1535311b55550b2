/** Pages of large tokens: written as they are opened, so that who does not read has little opened. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listedBytesMax } from '../../src/store/queries/token-pages.ts';
import { onBothEngines } from '../support/engines.ts';
import { linesSent } from '../support/lines.ts';
import { having } from '../support/sql.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { askUnread, type Unread, untilCut } from '../support/unread.ts';
import { revealEverything } from '../support/vault.ts';

const large = 'x'.repeat(900_000);
/** More megabytes than the connections of an operating system hold by themselves. */
const manyLarge = 24;
/** Of those, as many as fit into a connection, with some to spare. */
const openedMax = 18;

const newestFirst = (count: number) => Array.from({ length: count }, (_, at) => count - 1 - at);

async function fillWithLarge(tenant: TestTenant, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    await tenant.token({ id: `large-${at}`, type: 'token', data: large });
    tenant.vault.clock.advance(1);
  }
}

/** An answer that has begun, and is not read any further. */
function askAndPause({ vault, key }: TestTenant): Promise<Unread> {
  return askUnread({ url: `${vault.url}/tokens?size=${manyLarge}`, key });
}

async function readsOf(tenant: TestTenant): Promise<number> {
  return (await tenant.logged()).filter((operation) => operation === 'read').length;
}

onBothEngines('a page of large tokens', (engine) => {
  const tenants = tenantsOf(engine);

  test('is the page that GET /tokens/{id} would give token by token, large and small, in order', async () => {
    const tenant = await tenants();
    const atLimit = 'x'.repeat(listedBytesMax - 100);
    for (const [id, data] of Object.entries({
      first: 'é'.repeat(400_000),
      small: 'small',
      limit: atLimit,
      over: `${atLimit}${'x'.repeat(200)}`,
      last: { text: '"'.repeat(400_000) },
    })) {
      await tenant.token({ id, type: 'token', data, metadata: { owner: 'Ada' } });
      tenant.vault.clock.advance(1);
    }
    const ids = ['last', 'over', 'limit', 'small', 'first'];
    const single = await Promise.all(
      ids.map(async (id) => (await tenant.send('GET', `/tokens/${id}`)).body),
    );
    const query = { query: 'metadata.owner:Ada' };
    for (const [method, path, body] of [
      ['GET', '/tokens'],
      ['GET', '/v2/tokens'],
      ['POST', '/tokens/search', query],
      ['POST', '/v2/tokens/search', query],
    ] as const) {
      const before = await readsOf(tenant);
      const answer = await tenant.send(method, path, { body });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
      assert.equal(answer.headers.get('cache-control'), 'no-store');
      assert.deepEqual(answer.body.data, single);
      assert.equal(answer.body.pagination.page_size, 20);
      assert.equal((await readsOf(tenant)) - before, ids.length);
    }
    const page = await tenant.send('GET', '/tokens?size=2');
    assert.deepEqual(page.body.data, single.slice(0, 2));
    assert.equal(page.body.pagination.total_items, ids.length);
    const { next } = page.body.pagination;
    const rest = await tenant.send('GET', `/tokens?size=100&start=${next}`);
    assert.deepEqual(rest.body.data, single.slice(2));
  });

  test('leaves out what is gone when its turn comes, and shows the others as they stand then', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, manyLarge);
    const page = await askAndPause(tenant);
    const [changed, deleted, moved] = ['large-0', 'large-1', 'large-2'];
    const patch = { data: 'changed' };
    assert.equal((await tenant.send('PATCH', `/tokens/${changed}`, { body: patch })).status, 200);
    assert.equal((await tenant.send('DELETE', `/tokens/${deleted}`)).status, 204);
    assert.equal((await tenant.send('DELETE', `/tokens/${moved}`)).status, 204);
    await tenant.token({ id: moved, type: 'token', data: 'another token of that id' });
    const { text, complete } = await page.read();
    assert.ok(complete);
    const { data, pagination } = JSON.parse(text);
    assert.equal(pagination.total_items, manyLarge);
    assert.deepEqual(
      data.map(({ id }: { id: string }) => id),
      newestFirst(manyLarge)
        .map((at) => `large-${at}`)
        .filter((id) => id !== deleted && id !== moved),
    );
    assert.equal(data.at(-1).data, 'changed');
  });

  test('ends with its key: the connection is cut', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, manyLarge);
    const body = { name: 'brief', type: 'private', rules: [revealEverything] };
    const manage = { key: tenant.managementKey };
    const { body: application } = await tenant.send('POST', '/applications', { ...manage, body });
    const brief = { ...tenant, key: application.key };
    const page = await askAndPause(brief);
    const path = `/applications/${application.id}/keys/${application.keys[0].id}`;
    assert.equal((await tenant.send('DELETE', path, manage)).status, 204);
    assert.equal((await page.read()).complete, false);
    assert.ok((await readsOf(tenant)) <= openedMax);
  });

  test('that cannot be opened is a 500 at its beginning, and a cut connection later on', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, 3);
    const is = (token_id: string) => having(engine, 'tokens', { tenant_id: tenant.id, token_id });
    const alter = (id: string) =>
      engine.run(
        tenant.vault.place,
        `update tokens set data = (select data from tokens where ${is('large-1')})
          where ${is(id)}`,
      );
    await alter('large-0');
    await assert.rejects(tenant.send('GET', '/tokens'));
    await alter('large-2');
    const answer = await tenant.send('GET', '/tokens');
    assert.equal(answer.status, 500, answer.text.slice(0, 1000));
    assert.equal(answer.body.type, 'urn:strongroom:problem:integrity');
    const alarms = tenant.vault.logged.filter(({ fields }) => fields?.code === 'integrity');
    assert.equal(alarms.length, 2);
  });

  test('is not opened for HEAD, nor for a caller who sees no data', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, 2);
    const head = await tenant.send('HEAD', '/tokens');
    assert.deepEqual([head.status, head.text], [200, '']);
    const key = await tenant.holder({ transform: 'redact' });
    const redacted = await tenant.send('GET', '/tokens', { key });
    assert.deepEqual(
      redacted.body.data.map(({ id, data }: { id: string; data?: unknown }) => [id, data]),
      [
        ['large-1', undefined],
        ['large-0', undefined],
      ],
    );
    assert.equal(await readsOf(tenant), 0);
  });

  test('is not stored under an idempotency key: a retry is a new search', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, 1);
    const headers = { 'SVC-IDEMPOTENCY-KEY': 'b7c9f6c1-5d8e-4f0a-9c1e-2f6d1a3b4c5d' };
    const search = () => tenant.send('POST', '/tokens/search', { headers, body: {} });
    assert.equal((await search()).body.data.length, 1);
    assert.equal((await tenant.counts())['replies'], 0);
    await tenant.send('POST', '/tokens/bulk', linesSent([{ type: 'token', data: 'new' }]));
    assert.equal((await search()).body.data.length, 2);
  });
});

/** Longer than a busy machine takes for a token of a megabyte. */
const patienceMs = 2_000;

onBothEngines('a page of large tokens that nobody reads', (engine) => {
  const tenants = tenantsOf(engine, { requestTimeoutMs: patienceMs });

  test('has few of them opened, each after its entry, and is cut off', async () => {
    const tenant = await tenants();
    await fillWithLarge(tenant, manyLarge);
    const page = await askAndPause(tenant);
    await untilCut(tenant.vault);
    const opened = await readsOf(tenant);
    assert.ok(opened > 0 && opened <= openedMax, `${opened} were opened`);
    const { complete } = await page.read();
    assert.equal(complete, false);
    assert.equal(await readsOf(tenant), opened, 'the work went on without a reader');
    assert.equal((await tenant.logged()).filter((operation) => operation === 'list').length, 1);
  });
});
