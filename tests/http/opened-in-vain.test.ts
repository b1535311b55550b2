/** What was opened for a request that fails has an entry in the log, and a failure that opened nothing has none. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { encrypted } from '../support/client-encryption.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('A request that fails', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  const failures = async (tenant: TestTenant) =>
    (await tenant.rows('logs'))
      .filter(({ result }) => result === 'failed')
      .map(({ entity_type, entity_id, operation }) => [entity_type, entity_id, operation]);

  test('after it opened a token that it updates', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'card', data: visa })).body;
    const path = `/tokens/${id}`;
    const patched = await tenant.send('PATCH', path, { body: { data: { number: '1' } } });
    assert.equal(patched.status, 400, patched.text);
    assert.deepEqual(await failures(tenant), [['token', id, 'update']]);
    tenant.vault.clock.advance(refusalWindowMs);
    const keyed = { 'svc-idempotency-key': '8f14e45f-ceea-467f-a8f6-2d4f8c1f0d5a' };
    const again = { body: { data: { number: '2' } }, headers: keyed };
    assert.equal((await tenant.send('PATCH', path, again)).status, 400);
    assert.equal((await failures(tenant)).length, 2);
    const unread = await tenant.send('PATCH', path, { body: { expires_at: 'never' } });
    assert.equal(unread.status, 400);
  });

  test('after it opened a token whose bank account is to be verified', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'us_bank_account_number', data: '00001' })).body;
    const verify = '/enrichments/bank-account-verify';
    const refused = await tenant.send('POST', verify, { body: { token_id: id } });
    assert.equal(refused.status, 400, refused.text);
    assert.deepEqual(await failures(tenant), [['token', id, 'use']]);
  });

  test('after it opened an intent that it converts', async () => {
    const tenant = await newTenant();
    const intent = await tenant.send('POST', '/token-intents', {
      key: await tenant.application({ permissions: ['token-intent:create'] }),
      body: { type: 'card', data: visa },
    });
    const body = { token_intent_id: intent.body.id, id: '{{ data.number | nothing }}' };
    assert.equal((await tenant.send('POST', '/tokens', { body })).status, 400);
    assert.deepEqual(await failures(tenant), [['token_intent', intent.body.id, 'create']]);
    const unknown = { ...body, token_intent_id: missing };
    assert.equal((await tenant.send('POST', '/tokens', { body: unknown })).status, 400);
    assert.equal((await failures(tenant)).length, 2);
  });

  test('after it opened what a client encrypted for a call of a proxy', async () => {
    const tenant = await newTenant();
    const proxy = await createProxy(tenant, { destination_url: url });
    const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
    const given = { type: 'card', encrypted: await encrypted(made.body, JSON.stringify(visa)) };
    const references = Array.from({ length: 101 }, (_, at) => `{{ token-${at} }}`);
    const call = (headers: object) =>
      tenant.send('POST', '/proxy', {
        body: references,
        headers: { 'svc-proxy-key': proxy.key, ...headers },
      });
    const header = Buffer.from(JSON.stringify(given)).toString('base64');
    const refused = await call({ 'svc-encrypted': header });
    assert.equal(refused.status, 400, refused.text);
    assert.deepEqual(await failures(tenant), [['key', made.body.id, 'invoke']]);
    assert.equal((await call({})).status, 400);
    assert.equal((await failures(tenant)).length, 1);
  });

  test('for want of room after it opened what a client encrypted, also where a line of it is refused', async () => {
    const tenant = await newTenant();
    const made = await tenant.send('POST', '/keys', { key: tenant.managementKey, body: {} });
    const line = async (data: unknown) => ({
      type: 'token',
      encrypted: await encrypted(made.body, JSON.stringify(data)),
    });
    const rule = { priority: 1, container: '/general/', permissions: ['token:create'] };
    const key = await tenant.application({ rules: [{ ...rule, transform: 'reveal' }] });
    await tenant.setQuotas({ token_storage: 1 });
    const uses = async () =>
      (await tenant.rows('logs'))
        .filter(({ entity_id }) => entity_id === made.body.id)
        .map(({ result }) => result);
    const refused = await tenant.send('POST', '/tokens', { key, body: await line('text') });
    assert.equal(refused.status, 422, refused.text);
    assert.deepEqual(await uses(), ['success', 'failed']);
    const lines = [await line(visa), await line('text')];
    const answered = await tenant.send('POST', '/tokens/bulk', {
      key,
      body: lines.map((one) => JSON.stringify(one)).join('\n'),
      headers: { 'content-type': 'application/x-ndjson' },
    });
    assert.match(answered.text, /"status":403.*\n.*"status":422/);
    assert.deepEqual(await uses(), ['success', 'failed', 'denied']);
  });
});
