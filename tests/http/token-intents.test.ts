/** Token intents: created, read, deleted, converted, referred to, and gone after a day. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const card = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};
const { cvc: _cvc, ...withoutCode } = card;
const hour = 3_600_000;
const intentPermissions = ['create', 'read', 'delete'].map((one) => `token-intent:${one}`);

/** May do everything with tokens, in plaintext, and with token intents. */
const holder = (tenant: TestTenant) =>
  tenant.application({
    permissions: intentPermissions,
    rules: [
      {
        priority: 1,
        container: '/',
        permissions: ['token:create', 'token:read'],
        transform: 'reveal',
      },
    ],
  });

async function intent(tenant: TestTenant, key: string, data: unknown = card, type = 'card') {
  const created = await tenant.send('POST', '/token-intents', { key, body: { type, data } });
  assert.equal(created.status, 201, created.text);
  return created;
}

onBothEngines('Token intents', (engine) => {
  const tenants = tenantsOf(engine);

  test('201: it says what may be said of the data, and its fingerprint is that of the token', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const created = await intent(tenant, key);
    const { id, created_at, expires_at, created_by, ...rest } = created.body;
    assert.equal(created.headers.get('location'), `/token-intents/${id}`);
    const { fingerprint } = (await tenant.token({ type: 'card', data: card })).body;
    assert.deepEqual(rest, {
      tenant_id: tenant.id,
      type: 'card',
      card: {
        bin: '42424242',
        last4: '4242',
        expiration_month: 12,
        expiration_year: 2030,
        brand: 'visa',
      },
      fingerprint,
    });
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 24 * hour);
    assert.equal((await tenant.send('GET', '/applications/key', { key })).body.id, created_by);
    const read = await tenant.send('GET', `/token-intents/${id.toUpperCase()}`, { key });
    assert.deepEqual([read.status, read.body], [200, created.body]);
    assert.deepEqual(await tenant.logged('token_intent'), ['create', 'read']);
  });

  test('201: conversion gives the token all but the card code, once', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    const body = {
      token_intent_id: id,
      id: 'converted',
      metadata: { k: 'v' },
      containers: ['/x/'],
    };
    const converted = await tenant.send('POST', '/tokens', { key, body });
    assert.equal(converted.status, 201, converted.text);
    assert.deepEqual(
      [converted.body.id, converted.body.type, converted.body.data, converted.body.containers],
      ['converted', 'card', withoutCode, ['/x/']],
    );
    assert.equal((await tenant.send('GET', `/token-intents/${id}`, { key })).status, 404);
    const again = await tenant.send('POST', '/tokens', { key, body: { token_intent_id: id } });
    assert.deepEqual([again.status, Object.keys(again.body.errors)], [400, ['token_intent_id']]);
    assert.deepEqual(await tenant.rows('token_intents'), []);
    const logged = (await tenant.logged('token_intent')).slice(0, 3);
    assert.deepEqual(logged, ['convert', 'convert failed', 'create']);
  });

  test('200: conversion within tokenize, with the rest or not at all', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    const bad = { a: { token_intent_id: id }, b: { type: 'card', data: {} } };
    assert.equal((await tenant.send('POST', '/tokenize', { key, body: bad })).status, 400);
    const twice = { a: { token_intent_id: id }, b: { token_intent_id: id } };
    const refused = await tenant.send('POST', '/tokenize', { key, body: twice });
    assert.deepEqual(
      [refused.status, Object.keys(refused.body.errors)],
      [400, ['b.token_intent_id']],
    );
    const body = { a: { token_intent_id: id, id: 'from-intent' }, b: 'value' };
    const answer = await tenant.send('POST', '/tokenize', { key, body });
    assert.deepEqual([answer.body.a.id, answer.body.a.data], ['from-intent', withoutCode]);
    assert.deepEqual(await tenant.rows('token_intents'), []);
  });

  test('201: of many conversions at once exactly one takes the intent', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        tenant.send('POST', '/tokens', { key, body: { token_intent_id: id } }),
      ),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, ...Array(19).fill(400)]);
    assert.equal((await tenant.rows('tokens')).length, 1);
  });

  test('201: deduplicated to an equal token of its container alone, which takes over what it brings', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const existing = await tenant.token({ type: 'card', data: card, deduplicate_token: true });
    const later = { ...card, expiration_year: 2031 };
    const convert = async (containers?: string[]) => {
      const { id } = (await intent(tenant, key, later)).body;
      const body = {
        token_intent_id: id,
        deduplicate_token: true,
        metadata: { k: 'v' },
        containers,
      };
      return (await tenant.send('POST', '/tokens', { key, body })).body;
    };
    const same = await convert();
    assert.equal(same.id, existing.body.id);
    assert.deepEqual(same._extras, {
      deduplicated: true,
      deduplication_behavior: 'update_existing',
    });
    assert.deepEqual([same.data.expiration_year, same.metadata], [2031, { k: 'v' }]);
    assert.equal(same.data.cvc, '123');
    const elsewhere = await convert(['/pci/low/']);
    assert.notEqual(elsewhere.id, existing.body.id);
    assert.equal((await convert(['/pci/low/'])).id, elsewhere.id);
    assert.deepEqual(await tenant.rows('token_intents'), []);
  });

  test('204, 404: deleted, expired, converted, malformed and foreign ids are alike', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    assert.equal((await tenant.send('DELETE', `/token-intents/${id}`, { key })).status, 204);
    const old = (await intent(tenant, key)).body.id;
    tenant.vault.clock.advance(24 * hour);
    const stranger = await tenants();
    const foreign = (await intent(stranger, await holder(stranger))).body.id;
    const absent = await tenant.send('GET', '/token-intents/x', { key });
    assert.equal(absent.status, 404);
    for (const one of [id, old, foreign]) {
      for (const method of ['GET', 'DELETE']) {
        const answer = await tenant.send(method, `/token-intents/${one}`, { key });
        assert.deepEqual([answer.status, answer.text], [404, absent.text]);
      }
      const body = { token_intent_id: one };
      assert.equal((await tenant.send('POST', '/tokens', { key, body })).status, 400);
    }
    assert.equal((await stranger.rows('token_intents')).length, 1);
  });

  test('200: detokenize shows an intent as its token would be shown', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    const body = {
      number: `{{ token_intent: ${id} | json: '$.data.number' }}`,
      code: `{{ token_intent: ${id} | json: '$.data.cvc' }}`,
      type: `{{ token_intent: ${id} | json: '$.type' }}`,
    };
    const revealed = await tenant.send('POST', '/detokenize', { key, body });
    assert.deepEqual(revealed.body, { number: card.number, code: '123', type: 'card' });
    const masking = await tenant.application({ permissions: ['token:read', 'token-intent:read'] });
    const masked = await tenant.send('POST', '/detokenize', { key: masking, body });
    assert.deepEqual(masked.body, { number: 'XXXXXXXXXXXX4242', code: null, type: 'card' });
    assert.deepEqual(await tenant.logged('token_intent'), ['create', 'read', 'read']);
    const elsewhere = await tenant.application({
      permissions: ['token-intent:read'],
      rules: [
        { priority: 1, container: '/bank/', permissions: ['token:read'], transform: 'reveal' },
      ],
    });
    for (const other of [tenant.key, elsewhere]) {
      assert.equal((await tenant.send('POST', '/detokenize', { key: other, body })).status, 403);
    }
    const unknown = await tenant.send('POST', '/detokenize', {
      key,
      body: ['{{ token_intent: 00000000-0000-4000-8000-000000000000 }}', `{{ ${id} }}`],
    });
    assert.equal(unknown.status, 400);
  });

  test('400: a type that has no intents, wrong data, unknown attributes, both ways of creation at once', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const wrong: [object, string][] = [
      [{}, 'type'],
      [{ type: 'network_token', data: card }, 'type'],
      [{ type: 'card', data: { number: '1' } }, 'data.number'],
      [{ type: 'card', data: card, metadata: {} }, 'metadata'],
      [{ type: 'card', encrypted: 'x' }, 'encrypted'],
    ];
    for (const [body, path] of wrong) {
      const answer = await tenant.send('POST', '/token-intents', { key, body });
      assert.equal(answer.status, 400);
      assert.ok(path in answer.body.errors, answer.text);
    }
    const { id } = (await intent(tenant, key)).body;
    const both = { token_intent_id: id, type: 'card', data: card };
    const answer = await tenant.send('POST', '/tokens', { key, body: both });
    assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [400, ['token_intent_id']]);
    assert.equal((await tenant.rows('token_intents')).length, 1);
  });

  test('400: to convert an intent that is not there is seen in the log, in every way to create', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const body = { token_intent_id: '00000000-0000-4000-8000-000000000000' };
    const ways: [string, string, string | object, string][] = [
      ['/tokens', 'application/json', body, 'token_intent_id'],
      ['/tokenize', 'application/json', { a: [body] }, 'a[0].token_intent_id'],
      ['/tokens/bulk', 'application/x-ndjson', `${JSON.stringify(body)}\n`, 'token_intent_id'],
    ];
    for (const [path, type, sent, name] of ways) {
      const headers = { 'content-type': type };
      const { text } = await tenant.send('POST', path, { key, headers, body: sent });
      const { errors } = JSON.parse(text).problem ?? JSON.parse(text);
      assert.deepEqual(Object.keys(errors), [name]);
      tenant.vault.clock.advance(refusalWindowMs);
    }
    const entries = (await tenant.rows('logs')).filter(({ result }) => result === 'failed');
    assert.deepEqual(
      entries.map(({ entity_type, entity_id, operation }) => [entity_type, entity_id, operation]),
      ways.map(() => ['token_intent', '*', 'convert']),
    );
  });

  test('403: each operation needs its own permission; public applications may create', async () => {
    const tenant = await tenants();
    const type = 'public';
    const permissions = ['token-intent:create'];
    const open = await tenant.application({ type, permissions });
    const { id } = (await intent(tenant, open)).body;
    for (const method of ['GET', 'DELETE']) {
      assert.equal((await tenant.send(method, `/token-intents/${id}`, { key: open })).status, 403);
    }
    const body = { type: 'card', data: card };
    assert.equal((await tenant.send('POST', '/token-intents', { body })).status, 403);
    const denied = (await tenant.logged('token_intent')).filter((one) => one.endsWith('denied'));
    assert.deepEqual(denied, ['create denied', 'delete denied', 'read denied']);
  });

  test('the job removes intents after their day, each with its entry', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    tenant.vault.clock.advance(23 * hour);
    const { id: younger } = (await intent(tenant, key)).body;
    tenant.vault.clock.advance(2 * hour);
    await runJob(tenant.vault, 'expire token intents');
    const left = await tenant.rows('token_intents');
    assert.deepEqual(
      left.map((row) => row.token_intent_id),
      [younger],
    );
    const expired = (await tenant.rows('logs')).filter(({ operation }) => operation === 'expire');
    assert.deepEqual(
      expired.map(({ entity_type, entity_id }) => [entity_type, entity_id]),
      [['token_intent', id]],
    );
  });

  test('a card code is gone after the CVC Retention, to the second for readers, then from the disk', async () => {
    const tenant = await tenants();
    const key = await holder(tenant);
    const { id } = (await intent(tenant, key)).body;
    const body = [`{{ token_intent: ${id} | json: '$.data' }}`];
    const read = async () => (await tenant.send('POST', '/detokenize', { key, body })).body[0];
    tenant.vault.clock.advance(hour - 60_000);
    assert.deepEqual(await read(), card);
    tenant.vault.clock.advance(60_000);
    assert.deepEqual(await read(), withoutCode);
    const [before] = await tenant.rows('token_intents');
    tenant.vault.clock.advance(10 * 60_000);
    await runJob(tenant.vault, 'expire card codes of token intents');
    const [after] = await tenant.rows('token_intents');
    assert.ok((after?.data.length ?? 0) < (before?.data.length ?? 0));
    assert.deepEqual(await read(), withoutCode);
    const converted = await tenant.send('POST', '/tokens', { key, body: { token_intent_id: id } });
    assert.deepEqual(converted.body.data, withoutCode);
  });
});
