/** Idempotency keys: one effect for each, whoever retries, however often, on whichever server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { publicKeyLengthMin } from '../../src/http/idempotency/idempotency.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import {
  createStillClock,
  revealEverything,
  startVault,
  type TestVault,
} from '../support/vault.ts';

const day = 24 * 3600 * 1000;
const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });
const card = { type: 'card', data: visa };

onBothEngines('Idempotency', (engine) => {
  const tenants = tenantsOf(engine);

  test('POST /tokens: one key has one effect under 100 concurrent retries', async () => {
    const tenant = await tenants();
    const sent = { body: card, ...under('k-1') };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => tenant.send('POST', '/tokens', sent)),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201, 409]));
    const late = answers.find(({ status }) => status === 409);
    assert.equal(late?.body.type, 'urn:strongroom:problem:conflict');
    assert.equal(late?.headers.get('retry-after'), '1');
    const again = await tenant.send('POST', '/tokens', sent);
    const created = [...answers, again].filter(({ status }) => status === 201);
    assert.equal(new Set(created.map(({ text }) => text)).size, 1);
    assert.equal(new Set(created.map(({ headers }) => headers.get('location'))).size, 1);
    const counts = await tenant.counts();
    assert.deepEqual([counts['tokens'], counts['replies']], [1, 1]);
    assert.deepEqual(await tenant.logged(), ['create']);
  });

  test('the first answer is given for a day, also for another body, then the key is new', async (t) => {
    const tenant = await newTenant(await startVault(t, engine, { clock: createStillClock() }));
    const first = await tenant.send('POST', '/tokens', { body: card, ...under('k') });
    const other = { type: 'token', data: 'another body' };
    tenant.vault.clock.advance(day - 1);
    const replayed = await tenant.send('POST', '/tokens', { body: other, ...under('k') });
    assert.equal(replayed.body.id, first.body.id);
    tenant.vault.clock.advance(1);
    const later = await tenant.send('POST', '/tokens', { body: other, ...under('k') });
    assert.equal(later.status, 201);
    assert.equal(later.body.data, 'another body');
    const replay = await tenant.send('POST', '/tokens', { body: card, ...under('k') });
    assert.equal(replay.text, later.text);
    assert.equal((await tenant.counts())['replies'], 1);
  });

  test('400: with a public key, which all visitors share, a key that two of them may choose', async () => {
    const tenant = await tenants();
    const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const begin = (key: string) =>
      tenant.send('POST', '/sessions', { key: open, headers: { 'Svc-Idempotency-Key': key } });
    for (const key of ['order-1001', 'x'.repeat(publicKeyLengthMin - 1)]) {
      const refused = await begin(key);
      assert.equal(refused.status, 400);
      const [[header, messages] = []] = Object.entries(refused.body.errors);
      assert.equal(header?.toLowerCase(), 'svc-idempotency-key');
      assert.match(String(messages), /^must be a UUID or have at least 22 characters/);
      assert.equal(refused.text.includes(key), false);
    }
    const before = await tenant.counts();
    assert.equal(before['replies'], 0);
    assert.equal((await tenant.rows('sessions')).length, 0);
    for (const key of ['0b6b6b0a-8a54-4c1e-9d5b-7f6f1c3d2e11', 'x'.repeat(publicKeyLengthMin)]) {
      const first = await begin(key);
      assert.equal(first.status, 201, first.text);
      assert.equal((await begin(key)).text, first.text);
    }
    const own = { body: card, ...under('order-1001') };
    assert.equal((await tenant.send('POST', '/tokens', own)).status, 201);
  });

  test('a slash at the end of the path is the same request', async () => {
    const tenant = await tenants();
    const first = await tenant.send('POST', '/tokens', { body: card, ...under('k') });
    const again = await tenant.send('POST', '/tokens/', { body: card, ...under('k') });
    assert.equal(again.text, first.text);
    assert.equal((await tenant.counts())['tokens'], 1);
  });

  test('another way to write the path is the same request', async () => {
    const tenant = await tenants();
    const first = await tenant.send('POST', '/tokens', { body: card, ...under('k') });
    for (const path of ['/%74okens', '/tok%65ns/', '/tokens?a=b']) {
      const again = await tenant.send('POST', path, { body: card, ...under('k') });
      assert.equal(again.text, first.text, path);
    }
    assert.equal((await tenant.counts())['tokens'], 1);
    // Whatever can be in an id that a path names: the database refuses some of it as it is.
    const id = 'één @:,;~!$*()';
    await tenant.token({ id, type: 'token', data: 1 });
    const patch = (path: string, data: number) =>
      tenant.send('PATCH', path, { body: { data }, ...under('k') });
    const patched = await patch(`/tokens/${encodeURIComponent(id)}`, 2);
    assert.equal(patched.status, 200, patched.text);
    const everyByte = [...Buffer.from(id)].map((byte) => `%${byte.toString(16)}`).join('');
    assert.equal((await patch(`/tokens/${everyByte}`, 3)).text, patched.text);
    for (const path of ['/tokens/%00', '/tokens/a%0ab']) {
      assert.equal((await patch(path, 4)).status, 404, path);
    }
  });

  test('PATCH: applied once; for another token the key is another', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'one', type: 'token', data: { n: 1 } });
    await tenant.token({ id: 'two', type: 'token', data: { n: 1 } });
    const sent = (n: number) => ({ body: { data: { n } }, ...under('k') });
    const first = await tenant.send('PATCH', '/tokens/one', sent(2));
    await tenant.send('PATCH', '/tokens/one', { body: { data: { n: 3 } } });
    const replayed = await tenant.send('PATCH', '/tokens/one', sent(4));
    assert.equal(replayed.text, first.text);
    assert.equal(replayed.status, 200);
    assert.deepEqual((await tenant.send('GET', '/tokens/one')).body.data, { n: 3 });
    assert.deepEqual((await tenant.send('PATCH', '/tokens/two', sent(5))).body.data, { n: 5 });
  });

  test('POST /applications: one application, whose key is given again', async () => {
    const tenant = await tenants();
    const body = { name: 'once', type: 'private', permissions: ['token:read'] };
    const sent = { key: tenant.managementKey, body, ...under('k') };
    const first = await tenant.send('POST', '/applications', sent);
    const again = await tenant.send('POST', '/applications', sent);
    assert.equal(first.status, 201);
    assert.equal(again.text, first.text);
    const named = (await tenant.rows('applications')).filter(({ name }) => name === 'once');
    assert.equal(named.length, 1);
    const [reply] = await tenant.rows('replies');
    assert.equal(Buffer.from(reply?.reply ?? []).includes(first.body.key), false);
  });

  test('a failure is not stored: the next request with the key is processed as new', async () => {
    const tenant = await tenants();
    const denied = await tenant.holder({ container: '/nowhere/' });
    await tenant.token({ id: 'taken', type: 'token', data: 1 });
    const failures = [
      { body: { ...card, data: 'no card' }, status: 400 },
      { body: { ...card, unknown: true }, status: 400 },
      { body: '{', status: 400 },
      { body: { ...card, id: 'taken' }, status: 409 },
    ];
    for (const { body, status } of failures) {
      const failed = await tenant.send('POST', '/tokens', { body, ...under('k') });
      assert.equal(failed.status, status);
    }
    const refused = { key: denied, body: card, ...under('k') };
    assert.equal((await tenant.send('POST', '/tokens', refused)).status, 403);
    const gone = await tenant.send('PATCH', '/tokens/none', { body: {}, ...under('k') });
    assert.equal(gone.status, 404);
    assert.equal((await tenant.counts())['replies'], 0);
    const done = await tenant.send('POST', '/tokens', { body: card, ...under('k') });
    assert.equal(done.status, 201);
  });

  test('GET and DELETE ignore it', async () => {
    const tenant = await tenants();
    const { body } = await tenant.token(card);
    for (const status of [200, 204, 404]) {
      const method = status === 200 ? 'GET' : 'DELETE';
      const answer = await tenant.send(method, `/tokens/${body.id}`, under('x'.repeat(1000)));
      assert.equal(answer.status, status);
    }
    assert.equal((await tenant.counts())['replies'], 0);
  });

  test('400: a key that is empty, too long, or not one line; up to 255 characters it is taken', async () => {
    const tenant = await tenants();
    for (const key of ['', 'k'.repeat(256)]) {
      const refused = await tenant.send('POST', '/tokens', { body: card, ...under(key) });
      assert.equal(refused.status, 400);
      assert.deepEqual(Object.keys(refused.body.errors), ['svc-idempotency-key']);
      assert.equal(refused.text.includes('kkk'), false);
    }
    assert.equal((await tenant.counts())['tokens'], 0);
    const longest = under('k'.repeat(255));
    assert.equal((await tenant.send('POST', '/tokens', { body: card, ...longest })).status, 201);
  });

  test('each application has keys of its own, and so has each tenant', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const sent = { body: card, ...under('k') };
    const keys = [tenant.key, await tenant.application(), other.key];
    const ids = [];
    for (const key of keys)
      ids.push((await tenant.send('POST', '/tokens', { ...sent, key })).body.id);
    assert.equal(new Set(ids).size, 3);
    for (const [index, key] of keys.entries()) {
      const again = await tenant.send('POST', '/tokens', { ...sent, key });
      assert.equal(again.body.id, ids[index]);
    }
  });

  test('two servers on one store have one effect for one key', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    const sent = { key: tenant.key, body: card, ...under('k') };
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        (index % 2 === 0 ? vault : second).send('POST', '/tokens', sent),
      ),
    );
    assert.deepEqual(
      answers.filter(({ status }) => ![201, 409].includes(status)),
      [],
    );
    const replays = [
      await vault.send('POST', '/tokens', sent),
      await second.send('POST', '/tokens', sent),
    ];
    const created = [...answers, ...replays].filter(({ status }) => status === 201);
    assert.equal(new Set(created.map(({ body }) => body.id)).size, 1);
    assert.equal((await tenant.counts())['tokens'], 1);
    assert.deepEqual(await tenant.logged(), ['create']);
    await vault.stop();
    assert.equal((await second.send('POST', '/tokens', sent)).text, created[0]?.text);
  });

  test('what another server did is answered as done, also where it would be refused or fail by now', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    const permissions = ['token-intent:create', 'token-intent:read'];
    const key = await tenant.application({ permissions, rules: [revealEverything] });
    const intent = { key, body: { type: 'token', data: 'x' } };
    const { body: converted } = await tenant.send('POST', '/token-intents', intent);
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'moves', type: 'private', rules: [revealEverything] },
    });
    const application = `/applications/${created.body.id}`;
    const requests = [
      ['POST', '/tokens', key, { id: 'own', type: 'token', data: 'x' }],
      ['POST', '/tokens', key, { token_intent_id: converted.id }],
      ['PATCH', '/tokens/own', key, { metadata: { a: 'b' } }],
      ['POST', '/tokens', created.body.key, { id: 'moved', type: 'token', data: 'x' }],
    ] as const;
    const send = (server: TestVault, index: number) => {
      const [method, path, key, body] = requests[index] ?? requests[0];
      return server.send(method, path, { key, body, ...under(`k-${index}`) });
    };
    for (const index of requests.keys()) {
      assert.ok((await send(vault, index)).status < 300);
    }
    await tenant.send('DELETE', '/tokens/own');
    const elsewhere = { name: 'moves', rules: [{ ...revealEverything, container: '/elsewhere/' }] };
    const sent = { key: tenant.managementKey, body: elsewhere };
    assert.equal((await tenant.send('PUT', application, sent)).status, 200);
    vault.clock.advance(1000);
    const before = await tenant.logged();
    for (const index of requests.keys()) {
      const answer = await send(second, index);
      assert.ok(answer.status < 300, answer.text);
      assert.equal(answer.text, (await send(vault, index)).text);
    }
    // Of the conversion alone: its data came from an earlier request, and the updated token is gone.
    assert.deepEqual(await tenant.logged(), [...before, 'read', 'read'].sort());
    assert.equal((await tenant.counts())['tokens'], 2);
  });
});
