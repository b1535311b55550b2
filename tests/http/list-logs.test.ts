/** GET /logs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashApiKey } from '../../src/keys/api-key.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

interface Entry {
  readonly tenant_id: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly created_at: string;
}

const list = (tenant: TestTenant, query = ''): Promise<Received> =>
  tenant.send('GET', `/logs${query}`, { key: tenant.managementKey });

/** Creates as many tokens, the log's clock moving on by a second with each. */
async function createTokens(tenant: TestTenant, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    tenant.vault.clock.advance(1000);
    await tenant.token({ id: `token ${index}`, type: 'token', data: `mArKeR${index}` });
  }
}

const idsOf = ({ body }: Received): string[] => body.data.map((entry: Entry) => entry.entity_id);

onBothEngines('GET /logs', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: what was done, by whom, to what, newest first, and never a value', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 2);
    await tenant.send('GET', '/tokens/token%200');
    const key = await tenant.holder({ container: '/nowhere/' });
    await tenant.send('DELETE', '/tokens/token%200', { key });
    const listed = await list(tenant, '?entity_type=token');
    assert.equal(listed.status, 200);
    const told = listed.body.data.map((entry: Entry) => `${entry.operation} ${entry.entity_id}`);
    assert.deepEqual(told, ['delete token 0', 'read token 0', 'create token 1', 'create token 0']);
    const [, read] = listed.body.data;
    const [row] = await tenant.rows('tokens');
    const [sent] = (await tenant.rows('api_keys')).filter(
      (one) => one.key_hash === hashApiKey(tenant.key),
    );
    assert.deepEqual(read, {
      tenant_id: tenant.id,
      actor_id: row?.created_by,
      actor_type: 'application',
      entity_type: 'token',
      entity_id: 'token 0',
      operation: 'read',
      message: 'Token retrieved',
      result: 'success',
      shown: 'revealed',
      through: 'get',
      application_id: row?.created_by,
      key_id: sent?.key_id,
      container: '/general/high/',
      address: '127.0.0.1',
      trace_id: read.trace_id,
      created_at: read.created_at,
    });
    assert.match(read.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    assert.equal(listed.text.includes('mArKeR'), false);
  });

  test('200: reading the log is itself logged, before the answer', async () => {
    const tenant = await tenants();
    await list(tenant);
    assert.deepEqual(await tenant.logged('log'), ['read']);
    await list(tenant, '?entity_type=log');
    assert.deepEqual(await tenant.logged('log'), ['read', 'read']);
  });

  test('200: a cursor leads through every entry once, while others are added', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 7);
    const found: string[] = [];
    let start: string | undefined;
    for (const size of [3, 3, 1]) {
      const query = `?entity_type=token&size=${size}${start ? `&start=${start}` : ''}`;
      const page: Received = await list(tenant, query);
      assert.equal(page.body.pagination.page_size, size);
      found.push(...idsOf(page));
      start = page.body.pagination.next;
      await tenant.token({ type: 'token', data: 'added meanwhile' });
    }
    assert.deepEqual(
      found,
      [6, 5, 4, 3, 2, 1, 0].map((index) => `token ${index}`),
    );
    assert.equal(start, undefined);
  });

  test('200: pages by number end in an empty one; size 0 shows nothing', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 5);
    const query = '?entity_type=token&size=2&page=';
    const pages = [];
    for (const page of [1, 2, 3, 4, 1000]) pages.push(idsOf(await list(tenant, query + page)));
    assert.deepEqual(pages, [['token 4', 'token 3'], ['token 2', 'token 1'], ['token 0'], [], []]);
    assert.deepEqual((await list(tenant, '?size=0')).body.data, []);
    const defaults = await list(tenant);
    assert.equal(defaults.body.pagination.page_size, 20);
  });

  test('200: filters by entity and by date, from inclusive and until exclusive', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 4);
    const one = await list(tenant, '?entity_type=token&entity_id=token%202');
    assert.deepEqual(idsOf(one), ['token 2']);
    assert.deepEqual(idsOf(await list(tenant, '?entity_type=card')), []);
    assert.deepEqual(idsOf(await list(tenant, '?entity_type=token&entity_id=none')), []);
    const all = (await list(tenant, '?entity_type=token')).body.data as Entry[];
    const at = (index: number) => encodeURIComponent(all[3 - index]?.created_at ?? '');
    const between = await list(tenant, `?entity_type=token&start_date=${at(1)}&end_date=${at(3)}`);
    assert.deepEqual(idsOf(between), ['token 2', 'token 1']);
    assert.deepEqual(idsOf(await list(tenant, '?end_date=2000-01-01')), []);
  });

  test('200: entries older than the log retention are not shown', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 1);
    const { clock } = tenant.vault;
    clock.advance(400 * 24 * 3600 * 1000 - 60_000);
    assert.deepEqual(idsOf(await list(tenant, '?entity_type=token')), ['token 0']);
    clock.advance(60_001);
    assert.deepEqual(idsOf(await list(tenant, '?entity_type=token')), []);
  });

  test('400: each parameter that is wrong is named, and nothing is logged', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 3);
    const other = await newTenant(tenant.vault);
    await createTokens(other, 3);
    const foreign = (await list(other, '?size=1')).body.pagination.next;
    const own = (await list(tenant, '?size=1&entity_type=token')).body.pagination.next;
    const wrong: readonly (readonly [string, string])[] = [
      ['size=-1', 'size'],
      ['size=101', 'size'],
      ['size=1.5', 'size'],
      ['size=ten', 'size'],
      ['size=', 'size'],
      ['size=1&size=2', 'size'],
      ['page=0', 'page'],
      ['page=2147483648', 'page'],
      ['page=99999999999999999999', 'page'],
      ['entity_id=a&entity_id=b', 'entity_id'],
      [`entity_id=${'x'.repeat(401)}`, 'entity_id'],
      ['entity_id=%00', 'entity_id'],
      [`entity_type=${'x'.repeat(51)}`, 'entity_type'],
      ['entity_type=%00', 'entity_type'],
      ['start_date=yesterday', 'start_date'],
      ['start_date=', 'start_date'],
      ['end_date=2030-02-30', 'end_date'],
      ['start=mArKeR', 'start'],
      [`start=${'x'.repeat(501)}`, 'start'],
      [`start=${foreign}`, 'start'],
      [`entity_type=token&start=${own.slice(0, -1)}`, 'start'],
      [`entity_type=token&start=${own.startsWith('x') ? 'y' : 'x'}${own.slice(1)}`, 'start'],
      ['colour=red', 'colour'],
      ['__proto__=1', '__proto__'],
    ];
    const before = await tenant.counts();
    for (const [query, name] of wrong) {
      const refused = await list(tenant, `?${query}`);
      assert.equal(refused.status, 400, `${query} ${refused.text}`);
      assert.deepEqual(Object.keys(refused.body.errors), [name], query);
      assert.equal(refused.text.includes('mArKeR'), false);
    }
    assert.deepEqual(await tenant.counts(), before);
  });

  test('403: without log:read; logged as denied', async () => {
    const tenant = await tenants();
    const key = await tenant.application({ type: 'management', permissions: ['tenant:read'] });
    for (const holder of [key, tenant.key]) {
      assert.equal((await tenant.send('GET', '/logs', { key: holder })).status, 403);
    }
    assert.deepEqual(await tenant.logged('log'), ['read denied', 'read denied']);
  });
});
