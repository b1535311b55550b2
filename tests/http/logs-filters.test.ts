/** GET /logs while the log grows: cursors, pages by number, and searches over many entries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instantAfter } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

const list = (tenant: TestTenant, query: string): Promise<Received> =>
  tenant.send('GET', `/logs?${query}`, { key: tenant.managementKey });

const idsOf = ({ body }: Received): string[] =>
  body.data.map((entry: { entity_id: string }) => entry.entity_id);

async function createTokens(tenant: TestTenant, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `token ${index}`);
  for (const id of ids) await tenant.token({ id, type: 'token', data: 'x' });
  return ids.reverse();
}

onBothEngines('GET /logs, more than one page', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: who counts pages upwards sees every entry once, and comes to an end', async () => {
    const tenant = await tenants();
    const ids = await createTokens(tenant, 11);
    for (const size of [1, 3, 20]) {
      const found: string[] = [];
      for (let page = 1; ; page += 1) {
        // Reading adds an entry to the same list, and so does somebody else.
        const answer = await list(tenant, `page=${page}&size=${size}`);
        assert.equal(answer.status, 200);
        assert.equal(answer.body.pagination.page_number, page);
        await tenant.send('GET', '/tokens/token%200');
        if (answer.body.data.length === 0) break;
        found.push(...idsOf(answer));
        assert.ok(page < 500, 'the pages end');
      }
      const tokens = found.filter((id) => id.startsWith('token '));
      const created = tokens.filter((id) => id !== 'token 0');
      assert.deepEqual(created, ids.slice(0, -1), `size ${size}`);
    }
  });

  test('200: a cursor belongs to its filters and its tenant', async () => {
    const [tenant, other] = [await tenants(), await tenants()];
    await createTokens(tenant, 3);
    const first = await list(tenant, 'entity_type=token&size=1');
    const start = encodeURIComponent(first.body.pagination.next);
    const next = await list(tenant, `entity_type=token&size=2&start=${start}`);
    assert.deepEqual(idsOf(next), ['token 1', 'token 0']);
    assert.equal(next.body.pagination.next, undefined);
    assert.equal(next.body.pagination.page_number, undefined);
    const wrong = [
      `entity_type=application&start=${start}`,
      `start=${start}`,
      `entity_type=token&end_date=2099-01-01&start=${start}`,
      `entity_type=token&start=${start.slice(0, -1)}`,
    ];
    for (const query of wrong) {
      const refused = await list(tenant, query);
      assert.equal(refused.status, 400, query);
      assert.deepEqual(Object.keys(refused.body.errors), ['start']);
    }
    assert.equal((await list(other, `entity_type=token&start=${start}`)).status, 400);
  });

  test('200: an entity is found by type, by id and by both, newest first', async () => {
    const tenant = await tenants();
    await createTokens(tenant, 2);
    await tenant.send('GET', '/tokens/token%200');
    const operations = async (query: string) =>
      (await list(tenant, query)).body.data.map(
        (entry: { operation: string; entity_id: string }) =>
          `${entry.operation} ${entry.entity_id}`,
      );
    const both = ['read token 0', 'create token 0'];
    assert.deepEqual(await operations('entity_id=token%200'), both);
    assert.deepEqual(await operations('entity_id=token%200&entity_type=token'), both);
    assert.deepEqual(await operations('entity_id=token%200&size=1'), both.slice(0, 1));
    assert.deepEqual(await operations('entity_id=token%200&entity_type=application'), []);
    assert.deepEqual(await operations('entity_type=nothing'), []);
  });

  test('200: what is searched for is found behind any number of other entries', async () => {
    const tenant = await tenants();
    const entry = (await tenant.rows('logs')).find((row) => row.entity_type === 'tenant');
    assert.ok(entry);
    const wanted = { ...entry, entity_id: 'wanted' };
    const others = Array.from({ length: 700 }, (_, index) => ({
      ...entry,
      created_at: instantAfter(entry.created_at, Math.floor(index / 100)),
      entity_id: `other ${index}`,
    }));
    const { store } = tenant.vault.running.vault;
    await store.commit({
      entries: [wanted, ...others.slice(0, 350), wanted, ...others.slice(350)],
    });
    const first = await list(tenant, 'entity_id=wanted&size=1');
    assert.deepEqual(idsOf(first), ['wanted']);
    const start = encodeURIComponent(first.body.pagination.next);
    const second = await list(tenant, `entity_id=wanted&size=5&start=${start}`);
    assert.deepEqual(idsOf(second), ['wanted']);
    const found = [];
    for (let page = 1; found.length < 1000; page += 1) {
      const { body } = await list(tenant, `entity_type=tenant&size=100&page=${page}`);
      if (body.data.length === 0) break;
      found.push(...body.data);
    }
    assert.equal(found.length, 703);
  });

  test('200: of what retention no longer shows, neither a filter nor a date says anything', async () => {
    const vault = (await tenants()).vault;
    const tenant = await newTenant(vault);
    await createTokens(tenant, 1);
    vault.clock.advance(401 * 24 * 3600 * 1000);
    assert.deepEqual(idsOf(await list(tenant, 'entity_id=token%200')), []);
    assert.deepEqual(idsOf(await list(tenant, 'start_date=2000-01-01&entity_type=token')), []);
  });

  test('400: a size beyond 100, and dates that are none', async () => {
    const tenant = await tenants();
    for (const name of ['size=101', 'start_date=yesterday', 'end_date=2026-13-01', 'page=0']) {
      const refused = await list(tenant, name);
      assert.equal(refused.status, 400, name);
      assert.deepEqual(Object.keys(refused.body.errors), [name.split('=')[0]]);
    }
    assert.equal((await list(tenant, 'size=100')).status, 200);
  });
});
