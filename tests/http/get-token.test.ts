/** GET /tokens/{id}. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

onBothEngines('GET /tokens/{id}', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the token as it was created, without what only a creation says', async () => {
    const tenant = await tenants();
    const { _extras, ...created } = (await tenant.token({ type: 'card', data: visa })).body;
    const read = await tenant.send('GET', `/tokens/${created.id}`);
    assert.equal(read.status, 200);
    assert.equal(read.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(read.headers.get('cache-control'), 'no-store');
    assert.deepEqual(read.body, created);
  });

  test('200: JSON of any kind comes back byte for byte', async () => {
    const tenant = await tenants();
    const texts = [
      '""',
      '"\\u0000 \\ud800 ü ☃ 𝄞 \\" \\\\ /"',
      '0',
      '-1.5e-7',
      '123456789.12345679',
      'true',
      'false',
      '[]',
      '{}',
      '[null,[],{}]',
      '{"__proto__":{"a":1},"constructor":{"prototype":{"b":2}},"":"","a.b":1,"toString":null}',
      '{"2":"two","b":1,"a":{"_id":1,"camelCase":2,"snake_case":3}}',
      `"${'x'.repeat(1_000_000)}"`,
    ];
    for (const text of texts) {
      const body = `{"type":"token","data":${text},"metadata":{"__proto__":"a"}}`;
      const created = await tenant.send('POST', '/tokens', { body });
      assert.equal(created.status, 201, created.text.slice(0, 300));
      const read = await tenant.send('GET', `/tokens/${created.body.id}`);
      const told = text.slice(0, 100);
      assert.ok(read.text.includes(`"data":${text},`), told);
      assert.ok(created.text.includes(`"data":${text},`), told);
      assert.ok(read.text.includes('"metadata":{"__proto__":"a"}'), told);
    }
    assert.equal(({} as { a?: number }).a, undefined);
  });

  test('200: the entry of a read is committed before the answer, one for each', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ type: 'card', data: visa });
    for (let reads = 1; reads <= 5; reads += 1) {
      const headers = { 'svc-trace-id': `trace-${reads}` };
      await tenant.send('GET', `/tokens/${body.id}`, { headers });
      const entries = (await tenant.rows('logs')).filter(({ operation }) => operation === 'read');
      assert.equal(entries.length, reads);
      const entry = entries.find(({ trace_id }) => trace_id === `trace-${reads}`);
      assert.equal(entry?.entity_type, 'token');
      assert.equal(entry?.entity_id, body.id);
      assert.equal(entry?.message, 'Token retrieved');
      assert.equal(entry?.actor_id, body.created_by);
      assert.equal(entry?.result, 'success');
      assert.equal(entry?.origin, '127.0.0.1');
    }
    const together = Array.from({ length: 20 }, () => tenant.send('GET', `/tokens/${body.id}`));
    await Promise.all(together);
    assert.equal((await tenant.logged()).filter((one) => one === 'read').length, 25);
  });

  test('200: an idempotency key is ignored', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ id: 'own', type: 'token', data: 'old' });
    const headers = { 'svc-idempotency-key': 'k' };
    assert.equal((await tenant.send('GET', '/tokens/own', { headers })).body.data, 'old');
    await tenant.send('PATCH', '/tokens/own', { body: { data: 'new' } });
    assert.equal((await tenant.send('GET', '/tokens/own', { headers })).body.data, 'new');
    assert.equal((await tenant.counts())['replies'], 0);
    assert.equal(body.data, 'old');
  });

  test('403: a token in another container; logged as denied', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ type: 'card', data: visa });
    const key = await tenant.holder({ container: '/general/' });
    const denied = await tenant.send('GET', `/tokens/${body.id}`, { key });
    assert.equal(denied.status, 403);
    assert.equal(denied.text.includes('4242'), false);
    const entry = (await tenant.rows('logs')).find(({ result }) => result === 'denied');
    assert.equal(entry?.entity_id, body.id);
    assert.equal(entry?.message, 'Token read denied');
  });

  test('403: a key without token:read anywhere; logged as denied', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token({ type: 'card', data: visa });
    const key = await tenant.holder({ permissions: ['token:create'] });
    for (const id of [body.id, 'missing']) {
      const denied = await tenant.send('GET', `/tokens/${id}`, { key });
      assert.equal(denied.status, 403);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    assert.deepEqual(await tenant.logged(), ['create', 'read denied', 'read denied']);
  });

  test("404: a missing, an expired, and another tenant's token look alike; the attempts are logged", async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const { clock } = tenant.vault;
    await other.token({ id: 'of another', type: 'token', data: 1 });
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    await tenant.token({ id: 'expired', type: 'token', data: 1, expires_at });
    clock.advance(60_001);
    const answers = [];
    for (const id of ['missing', 'expired', 'of%20another', 'ab', '%00abc', 'x'.repeat(401)]) {
      answers.push(await tenant.send('GET', `/tokens/${id}`));
      clock.advance(refusalWindowMs);
    }
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([404]));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.deepEqual(answers[0]?.body, {
      type: 'urn:strongroom:problem:not_found',
      title: 'Not Found',
      status: 404,
      detail: 'There is no token with this id.',
    });
    const failed = (await tenant.rows('logs')).filter(({ result }) => result === 'failed');
    assert.deepEqual(
      failed.map(({ entity_id, operation }) => `${operation} ${entity_id}`),
      Array(6).fill('read *'),
    );
    assert.deepEqual(await other.logged(), ['create']);
  });
});
