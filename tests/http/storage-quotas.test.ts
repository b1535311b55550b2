/** What a tenant and its public applications store is counted to the byte, and is no more than their quotas. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { day } from '../../src/base/clock.ts';
import { tenantNumber } from '../../src/store/stored-form.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

onBothEngines('storage quotas', (engine) => {
  const newTenant = tenantsOf(engine);

  const usage = async (tenant: TestTenant) => {
    const { body } = await tenant.send('GET', '/tenants/self/reports/usage', {
      key: tenant.managementKey,
    });
    return {
      total: (body.storage?.stored_bytes ?? 0) as number,
      by: body.storage?.by_application as Record<string, number>,
    };
  };
  const bytesOf = async (tenant: TestTenant) => (await usage(tenant)).total;
  const publicKey = (tenant: TestTenant) =>
    tenant.application({ type: 'public', permissions: ['token:create', 'token-intent:create'] });

  test('422: a public application stores no more than its quota, with its sessions and intents', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const create = () =>
      tenant.send('POST', '/tokens', { key, body: { type: 'token', data: 'a'.repeat(1000) } });
    assert.equal((await create()).status, 201);
    const one = await bytesOf(tenant);
    assert.ok(one > 1000 && one < 2000, String(one));
    await tenant.setQuotas({ public_application_storage: 2 * one });
    assert.equal((await create()).status, 201);
    const refused = await create();
    assert.equal(refused.status, 422, refused.text);
    assert.match(refused.body.detail, /quota public_application_storage/);
    const intent = { key, body: { type: 'token', data: 'b' } };
    assert.equal((await tenant.send('POST', '/token-intents', intent)).status, 422);
    assert.equal((await tenant.send('POST', '/sessions', { key })).status, 422);
    const bulk = { key, body: { x: 'a', y: 'b' } };
    assert.equal((await tenant.send('POST', '/tokenize', bulk)).status, 422);
    assert.equal(await bytesOf(tenant), 2 * one, 'a refused request stores nothing');
    // Others are not concerned.
    assert.equal((await tenant.token({ type: 'token', data: 'c' })).status, 201);
  });

  test('422: a tenant stores no more than its quota, and what is deleted makes room', async () => {
    const tenant = await newTenant();
    const create = (n: number) =>
      tenant.send('POST', '/tokens', {
        body: { id: `token-${n}`, type: 'token', data: 'a'.repeat(40) },
      });
    const patch = (data: string) => tenant.send('PATCH', '/tokens/token-1', { body: { data } });
    await create(1);
    const one = await bytesOf(tenant);
    await tenant.setQuotas({ token_storage: 2 * one });
    assert.equal((await create(2)).status, 201);
    const refused = await create(3);
    assert.equal(refused.status, 422);
    assert.match(refused.body.detail, /quota token_storage/);
    assert.equal((await patch('a'.repeat(100))).status, 422);
    assert.equal((await patch('a')).status, 200);
    // Of other data the fingerprint may have another character: 43 or 44.
    assert.equal((await patch('a'.repeat(40))).status, 200, 'what became smaller makes room');
    assert.equal(await bytesOf(tenant), 2 * one);
    await tenant.setQuotas({ token_storage: one });
    assert.equal((await patch('b')).status, 200, 'a quota that is exceeded forbids no shrinking');
    assert.equal((await tenant.send('GET', '/tokens/token-1')).status, 200);
    for (const n of [1, 2]) {
      assert.equal((await tenant.send('DELETE', `/tokens/token-${n}`)).status, 204);
    }
    assert.equal(await bytesOf(tenant), 0);
    assert.equal((await create(5)).status, 201);
  });

  test('a change that leaves less stored goes through above the quota, with its stored response', async () => {
    const tenant = await newTenant();
    await tenant.token({ id: 'token-1', type: 'token', data: 'a'.repeat(5_000) });
    const one = await bytesOf(tenant);
    await tenant.setQuotas({ token_storage: one - 2_000 });
    const patch = (data: string) =>
      tenant.send('PATCH', '/tokens/token-1', {
        body: { data },
        headers: { 'svc-idempotency-key': randomUUID() },
      });
    const smaller = await patch('a'.repeat(500));
    assert.equal(smaller.status, 200, smaller.text);
    const left = await bytesOf(tenant);
    assert.ok(left < one, `${left} of ${one}`);
    await tenant.setQuotas({ token_storage: left - 100 });
    const larger = await patch('a'.repeat(490));
    assert.equal(larger.status, 422, 'the stored response takes more than the change gives back');
    const both = await Promise.all([
      tenant.send('PATCH', '/tokens/token-1', { body: { data: 'a' } }),
      tenant.token({ type: 'token', data: 'b' }).catch(() => undefined),
    ]);
    assert.equal(both[0].status, 200);
  });

  async function runLater(tenant: TestTenant): Promise<void> {
    tenant.vault.clock.advance(2 * day);
    for (const job of ['forget replies', 'remove sessions', 'expire token intents']) {
      await runJob(tenant.vault, job);
    }
  }

  test('concurrent creates never exceed the quota, and use all of it', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const create = (n: number) =>
      tenant.send('POST', '/tokens', {
        key,
        body: { id: `${'c'.repeat(8)}${n + 100}`, type: 'token', data: 'a'.repeat(500) },
      });
    await create(0);
    const one = await bytesOf(tenant);
    await tenant.setQuotas({ public_application_storage: 12 * one + 7 });
    const statuses = (await Promise.all(Array.from({ length: 60 }, (_, n) => create(n + 1)))).map(
      ({ status }) => status,
    );
    assert.equal(statuses.filter((status) => status === 201).length, 11, String(statuses));
    assert.equal(statuses.filter((status) => status === 422).length, 49);
    assert.equal(await bytesOf(tenant), 12 * one);
  });

  test('a counter that was made too large outside the vault stops no change of another tenant', async () => {
    const [altered, other] = [await newTenant(), await newTenant()];
    const create = (tenant: TestTenant) =>
      tenant.send('POST', '/tokens', { body: { type: 'token', data: randomUUID() } });
    assert.equal((await create(altered)).status, 201);
    const largest = 2n ** 63n - 1n;
    await engine.run(
      altered.vault.place,
      `update stored_bytes set bytes = ${largest} where tenant_id = ${tenantNumber(altered.id)}`,
    );
    const pairs = Array.from({ length: 20 }, () => [create(altered), create(other)] as const);
    await Promise.all(pairs.map(([own]) => own));
    for (const [, created] of pairs) assert.equal((await created).status, 201);
  });

  test('what was counted goes when its rows go, however they go', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const expires_at = new Date(tenant.vault.clock.now() + day).toISOString();
    const send = (path: string, body: unknown, headers = {}) =>
      tenant.send('POST', path, { key, body, headers });
    const idempotent = { 'svc-idempotency-key': '6cb8b4ae-5c0b-4f0e-9a51-0a6b3c1f2d11' };
    await send(
      '/tokens',
      { type: 'token', data: 'a', expires_at, metadata: { a: 'b' } },
      idempotent,
    );
    await send('/token-intents', { type: 'token', data: 'a' });
    const session = await send('/sessions', {});
    assert.equal(session.status, 201, session.text);
    const kept = await tenant.token({
      type: 'card',
      data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2099, cvc: '123' },
      search_indexes: ['{{ data.number }}'],
    });
    const path = `/tokens/${kept.body.id}`;
    await tenant.send('PATCH', path, { body: { metadata: { a: 'b', c: 'd' } } });
    const { by } = await usage(tenant);
    assert.equal(Object.keys(by).length, 2);
    assert.ok(Object.values(by).every((bytes) => bytes > 0));
    await tenant.send('DELETE', path);
    await runLater(tenant);
    await runJob(tenant.vault, 'expire tokens');
    assert.deepEqual(
      Object.values((await usage(tenant)).by),
      [0, 0],
      'every byte is given back exactly once',
    );
  });
});
