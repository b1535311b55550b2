/** Answers that are given again show no more than their caller could be shown at that time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { having } from '../support/sql.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const hour = 3_600_000;
const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });
const card = { type: 'card', data: { number: visa.number }, metadata: { order: '7' } };
const contents = ['data', 'card', 'mask', 'metadata', 'search_indexes', 'fingerprint_expression'];
const everything = ['token:create', 'token:read', 'token:update', 'token:search'];

onBothEngines('Answers given again', (engine) => {
  const tenants = tenantsOf(engine);

  /** An application whose one rule can be changed. */
  async function holder(tenant: TestTenant) {
    const rule = { priority: 1, container: '/', permissions: everything, transform: 'reveal' };
    const { body } = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', rules: [rule] },
    });
    const become = async (change: object) => {
      const changed = { name: 'a', rules: [{ ...rule, ...change }] };
      const sent = { key: tenant.managementKey, body: changed };
      assert.equal((await tenant.send('PUT', `/applications/${body.id}`, sent)).status, 200);
    };
    const send = (path: string, sent: object, method = 'POST') =>
      tenant.send(method, path, { key: body.key, body: sent, ...under('k') });
    return { become, send };
  }

  test('a token that exists, and may be seen as before, is shown exactly as before', async () => {
    const tenant = await tenants();
    const { send } = await holder(tenant);
    const first = await send('/tokens', card);
    await tenant.send('PATCH', `/tokens/${first.body.id}`, { body: { metadata: { a: 'b' } } });
    assert.equal((await send('/tokens', {})).text, first.text);
  });

  test('a token that was deleted is shown without its contents', async () => {
    const tenant = await tenants();
    const { send } = await holder(tenant);
    const created = await send('/tokens', card);
    const path = `/tokens/${created.body.id}`;
    const patched = await send(path, { metadata: { a: 'b' } }, 'PATCH');
    assert.equal((await tenant.send('DELETE', path)).status, 204);
    for (const [replayed, first] of [
      [await send('/tokens', card), created],
      [await send(path, {}, 'PATCH'), patched],
    ] as const) {
      assert.equal(replayed.status, first.status);
      const left = { ...first.body };
      for (const name of contents) delete left[name];
      assert.deepEqual(replayed.body, left);
      assert.equal(replayed.headers.get('location'), first.headers.get('location'));
    }
  });

  test('another token that has taken the id is not shown', async () => {
    const tenant = await tenants();
    const { send } = await holder(tenant);
    await send('/tokens', { ...card, id: 'reused' });
    await tenant.send('DELETE', '/tokens/reused');
    tenant.vault.clock.advance(1);
    await tenant.token({ id: 'reused', type: 'token', data: 'of somebody else' });
    const replayed = await send('/tokens', card);
    assert.equal('data' in replayed.body, false);
  });

  test('an expiry that was set later counts', async () => {
    const tenant = await tenants();
    const { send } = await holder(tenant);
    const { body } = await send('/tokens', card);
    const expires_at = new Date(tenant.vault.clock.now() + hour).toISOString();
    await tenant.send('PATCH', `/tokens/${body.id}`, { body: { expires_at } });
    tenant.vault.clock.advance(hour);
    const replayed = await send('/tokens', card);
    assert.equal(replayed.body.id, body.id);
    assert.equal('data' in replayed.body, false);
  });

  test('a weaker rule shows less: masked, redacted, or nothing of the contents', async () => {
    const tenant = await tenants();
    const { send, become } = await holder(tenant);
    const first = await send('/tokens', card);
    const masked = 'XXXXXXXXXXXX4242';
    await become({ transform: 'mask' });
    const replayed = await send('/tokens', card);
    assert.deepEqual(replayed.body, { ...first.body, data: { number: masked } });
    await become({ transform: 'redact' });
    const redacted = await send('/tokens', card);
    const { data, card: summary, ...others } = first.body;
    assert.ok(data && summary);
    assert.deepEqual(redacted.body, others);
    await become({ container: '/elsewhere/' });
    const unseen = await send('/tokens', card);
    assert.equal(unseen.status, 201);
    assert.equal(unseen.body.id, first.body.id);
    for (const name of contents) assert.equal(name in unseen.body, false, name);
    await become({ transform: 'reveal' });
    assert.equal((await send('/tokens', card)).text, first.text);
    assert.equal((await tenant.counts())['tokens'], 1);
  });

  test('a mask shows no more than the mask of now', async () => {
    const tenant = await tenants();
    const { send, become } = await holder(tenant);
    await become({ transform: 'mask' });
    const { body } = await send('/tokens', card);
    assert.ok(body.data);
    await tenant.send('PATCH', `/tokens/${body.id}`, { body: { mask: 'hidden' } });
    assert.equal((await send('/tokens', card)).body.data, 'hidden');
  });

  test('tokenize: each token of the answer for itself', async () => {
    const tenant = await tenants();
    const { send, become } = await holder(tenant);
    const body = { a: [card, 'plain'], '__proto__.b': { type: 'token', data: 'stays' } };
    const first = await send('/tokenize', body);
    assert.equal(first.status, 200, first.text);
    await tenant.send('DELETE', `/tokens/${first.body.a[0].id}`);
    const replayed = await send('/tokenize', body);
    assert.deepEqual(Object.keys(replayed.body), Object.keys(first.body));
    assert.equal(replayed.body.a[0].id, first.body.a[0].id);
    assert.equal('data' in replayed.body.a[0], false);
    assert.equal(replayed.body.a[1], first.body.a[1]);
    assert.deepEqual(replayed.body['__proto__.b'], first.body['__proto__.b']);
    await become({ transform: 'redact' });
    assert.equal((await send('/tokenize', body)).text.includes('stays'), false);
    assert.equal((await tenant.counts())['tokens'], 2);
  });

  test('what only read is read again where it would be answered otherwise', async () => {
    const tenant = await tenants();
    const { send, become } = await holder(tenant);
    const { id } = (await tenant.token({ ...card, search_indexes: ['{{ data.number }}'] })).body;
    const asked = { value: `{{ ${id} | json: '$.number' }}` };
    const search = { query: `data:${visa.number}` };
    const first = await send('/detokenize', asked);
    const found = await send('/tokens/search', search);
    assert.equal(first.body.value, visa.number);
    assert.equal(found.body.data[0]?.data.number, visa.number);
    assert.equal((await send('/detokenize', { value: 'other' })).text, first.text);
    await become({ transform: 'mask' });
    assert.equal((await send('/detokenize', asked)).body.value, 'XXXXXXXXXXXX4242');
    assert.equal((await send('/tokens/search', search)).text.includes(visa.number), false);
    await tenant.send('DELETE', `/tokens/${id}`);
    assert.equal((await send('/detokenize', asked)).status, 400);
    assert.deepEqual((await send('/tokens/search', search)).body.data, []);
  });

  test('of what is damaged the log names no idempotency key', async () => {
    const tenant = await tenants();
    const key = 'order-of-4242424242424242';
    const sent = { body: { type: 'token', data: 1 }, ...under(key) };
    await tenant.send('POST', '/tokens', sent);
    await engine.run(
      tenant.vault.place,
      `update replies set reply = (select keyring from tenants where tenant_id = '${tenant.id}') ` +
        `where ${having(engine, 'replies', { tenant_id: tenant.id })}`,
    );
    const failed = await tenant.send('POST', '/tokens', sent);
    assert.equal(failed.status, 500);
    const told = tenant.vault.logged.filter(({ fields }) => fields?.code === 'integrity');
    assert.equal(told.length, 1);
    assert.match(String(told[0]?.fields?.reason), /^reply of /);
    assert.equal(JSON.stringify(tenant.vault.logged).includes(key), false);
  });
});
