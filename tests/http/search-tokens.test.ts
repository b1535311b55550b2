/** POST /tokens/search and POST /v2/tokens/search. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const versions = ['/tokens/search', '/v2/tokens/search'] as const;

async function people(tenant: TestTenant): Promise<void> {
  const person = { type: 'social_security_number', metadata: { Team: 'Red', city: 'Bern' } };
  await tenant.token({ ...person, id: 'p-1', data: '123-45-6789' });
  tenant.vault.clock.advance(1);
  await tenant.token({ ...person, id: 'p-2', data: '987-65-4321', metadata: { Team: 'blue' } });
  tenant.vault.clock.advance(1);
  const search_indexes = ['{{ data }}', '{{ data | last4 }}'];
  await tenant.token({ id: 'note', type: 'token', data: 'He said "Hi" \\ 6789', search_indexes });
}

async function found(tenant: TestTenant, path: string, query: string, key = tenant.key) {
  const answer = await tenant.send('POST', path, { key, body: { query } });
  assert.equal(answer.status, 200, `${query}: ${answer.text}`);
  return answer.body.data.map(({ id }: { id: string }) => id);
}

onBothEngines('Token search', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: by every field and by several, on both versions, as soon as it is created', async () => {
    const tenant = await tenants();
    await people(tenant);
    const { fingerprint } = (await tenant.send('GET', '/tokens/p-1')).body;
    const queries: Record<string, string[]> = {
      'data:123-45-6789': ['p-1'],
      'data:123456789': ['p-1'],
      'data:6789': ['note', 'p-1'],
      'data:"He said \\"Hi\\" \\\\ 6789"': ['note'],
      'data:"he said \\"Hi\\" \\\\ 6789"': [],
      'id:p-2': ['p-2'],
      'id:"p-2" AND data:4321': ['p-2'],
      'id:p-2 AND data:6789': [],
      'id:x': [],
      'container:"/pii/"': ['p-2', 'p-1'],
      'container:/PII/high/': ['p-2', 'p-1'],
      'type:token': ['note'],
      'type:token AND container:"/pii/"': [],
      [`fingerprint:${fingerprint}`]: ['p-1'],
      'metadata.Team:Red': ['p-1'],
      'metadata.Team:Red AND metadata.city:"Bern" AND data:6789': ['p-1'],
      'metadata.Team:Red AND metadata.city:Basel': [],
      'data:6789  AND  data:"123-45-6789"': ['p-1'],
      '   ': ['note', 'p-2', 'p-1'],
    };
    for (const path of versions) {
      for (const [query, ids] of Object.entries(queries)) {
        assert.deepEqual(await found(tenant, path, query), ids, `${path} ${query}`);
      }
    }
  });

  test('200: metadata without regard to case on the first version, with it on the second', async () => {
    const tenant = await tenants();
    await people(tenant);
    for (const query of ['metadata.team:RED', 'metadata."TEAM":red']) {
      assert.deepEqual(await found(tenant, versions[0], query), ['p-1']);
      assert.deepEqual(await found(tenant, versions[1], query), []);
    }
  });

  test('200: no query is every token; pages by number and by cursor', async () => {
    const tenant = await tenants();
    await people(tenant);
    const numbered = await tenant.send('POST', versions[0], { body: { size: 2, page: 2 } });
    assert.deepEqual(numbered.body.pagination, {
      total_items: 3,
      page_number: 2,
      page_size: 2,
      total_pages: 2,
    });
    assert.equal(numbered.body.data[0].id, 'p-1');
    const first = await tenant.send('POST', versions[1], { body: { query: null, size: 2 } });
    const { next: start } = first.body.pagination;
    const second = await tenant.send('POST', versions[1], { body: { size: 2, start } });
    assert.deepEqual(
      [...first.body.data, ...second.body.data].map(({ id }) => id),
      ['note', 'p-2', 'p-1'],
    );
    assert.deepEqual(second.body.pagination, { page_size: 2 });
  });

  test('200: what the search rule shows, of what it covers; logged with the tokens shown', async () => {
    const tenant = await tenants();
    await people(tenant);
    const rule = (container: string, transform: string, priority: number) => ({
      priority,
      container,
      permissions: ['token:search'],
      transform,
    });
    const key = await tenant.application({ rules: [rule('/pii/', 'mask', 1)] });
    const answer = await tenant.send('POST', versions[0], { key, body: { query: 'data:6789' } });
    assert.deepEqual(
      answer.body.data.map(({ id, data }: Record<string, unknown>) => [id, data]),
      [['p-1', 'XXX-XX-6789']],
    );
    assert.equal(answer.body.pagination.total_items, 1);
    assert.deepEqual(await tenant.logged(), ['create', 'create', 'create', 'read', 'search']);
    const reader = await tenant.application({ permissions: ['token:read'] });
    assert.equal((await tenant.send('POST', versions[0], { key: reader, body: {} })).status, 403);
  });

  test('200: a term follows the data, and goes with the token', async () => {
    const tenant = await tenants();
    await people(tenant);
    await tenant.send('PATCH', '/tokens/p-1', { body: { data: '111-22-3333' } });
    assert.deepEqual(await found(tenant, versions[1], 'data:6789'), ['note']);
    assert.deepEqual(await found(tenant, versions[1], 'data:3333'), ['p-1']);
    await tenant.send('DELETE', '/tokens/p-1');
    assert.deepEqual(await found(tenant, versions[1], 'data:3333'), []);
  });

  test('200: a token that moves, or is given an expiry, is found and counted as it is from then on', async () => {
    const tenant = await tenants();
    const body = { id: 'moved', type: 'token', data: 'x', search_indexes: ['{{ data }}'] };
    await tenant.token({ ...body, containers: ['/from/'] });
    const reader = await tenant.holder({ container: '/to/' });
    const patch = (change: object) => tenant.send('PATCH', '/tokens/moved', { body: change });
    const total = async (key: string) => {
      const sent = { key, body: { query: 'data:x' } };
      return (await tenant.send('POST', versions[0], sent)).body.pagination.total_items;
    };
    assert.deepEqual([await total(tenant.key), await total(reader)], [1, 0]);
    assert.equal((await patch({ containers: ['/to/'] })).status, 200);
    assert.deepEqual([await total(tenant.key), await total(reader)], [1, 1]);
    assert.deepEqual(await found(tenant, versions[1], 'data:x AND container:"/to/"'), ['moved']);
    assert.deepEqual(await found(tenant, versions[1], 'data:x AND container:"/from/"'), []);
    const soon = new Date(tenant.vault.clock.now() + 60_000).toISOString();
    assert.equal((await patch({ expires_at: soon })).status, 200);
    assert.equal(await total(reader), 1);
    tenant.vault.clock.advance(61_000);
    assert.deepEqual([await total(tenant.key), await total(reader)], [0, 0]);
  });

  test('400: what is no query names query and never holds it', async () => {
    const tenant = await tenants();
    const secret = 'Sup3rSecret';
    const bad = [
      `data:${secret}*`,
      `data:"${secret}`,
      `${secret}`,
      `data:${secret} OR data:y`,
      `data:${secret} and data:y`,
      `data:${secret} data:y`,
      `data:${secret} AND`,
      `NOT data:${secret}`,
      `-data:${secret}`,
      `(data:${secret})`,
      `data:[a TO ${secret}]`,
      `created_by:${secret}`,
      `type:${secret}`,
      `type:card AND type:bank`,
      `container:${secret}`,
      `fingerprint:"${secret} "`,
      `metadata:${secret}`,
      `metadata.:${secret}`,
      'data:',
      `data:"${'x'.repeat(200)}"`,
    ];
    for (const query of bad) {
      for (const path of versions) {
        const answer = await tenant.send('POST', path, { body: { query } });
        assert.equal(answer.status, 400, query);
        assert.deepEqual(Object.keys(answer.body.errors), ['query'], query);
        assert.ok(!answer.text.includes(secret), answer.text);
      }
    }
    for (const body of [
      { query: 1 },
      { query: 'data:x', sort: 'id' },
      { size: 101 },
      { start: 'x' },
    ]) {
      assert.equal((await tenant.send('POST', versions[1], { body })).status, 400);
    }
  });

  test('403: a container on which token:search is not held', async () => {
    const tenant = await tenants();
    await people(tenant);
    const key = await tenant.holder({ container: '/pii/high/', permissions: ['token:search'] });
    for (const path of versions) {
      const body = { query: 'container:"/pii/" AND data:6789' };
      assert.equal((await tenant.send('POST', path, { key, body })).status, 403);
    }
    assert.deepEqual(await found(tenant, versions[0], 'container:"/pii/high/"', key), [
      'p-2',
      'p-1',
    ]);
  });

  test('only keyed digests of terms are stored, metadata included', async () => {
    const tenant = await tenants();
    await people(tenant);
    for (const { term } of await tenant.rows('search_terms')) assert.match(term, /^[\w-]{22}$/);
    const other = await tenants();
    await people(other);
    const own = new Set((await tenant.rows('search_terms')).map(({ term }) => term));
    assert.ok((await other.rows('search_terms')).every(({ term }) => !own.has(term)));
  });
});
