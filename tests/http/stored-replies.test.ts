/** Stored responses: who they are given to, what is logged of it, and that two servers agree about them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { connectTo } from '../support/raw-request.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const day = 24 * 3600 * 1000;
const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });
const body = { type: 'token', data: 'a value' };

onBothEngines('Stored responses', (engine) => {
  const tenants = tenantsOf(engine);

  test('are given again only with an entry in the log', async () => {
    const tenant = await tenants();
    const { id } = (await tenant.send('POST', '/tokens', { body, ...under('k') })).body;
    await tenant.send('PATCH', `/tokens/${id}`, { body: {}, ...under('k') });
    assert.deepEqual(await tenant.logged('idempotency_key'), []);
    await tenant.send('POST', '/tokens', { body, ...under('k') });
    await tenant.send('PATCH', `/tokens/${id}`, { body: {}, ...under('k') });
    const entries = (await tenant.rows('logs')).filter(
      ({ entity_type }) => entity_type === 'idempotency_key',
    );
    const told = entries.map((entry) => `${entry.operation} ${entry.entity_id} ${entry.message}`);
    assert.deepEqual(told.sort(), [
      `read PATCH /tokens/${id} Stored response retrieved`,
      'read POST /tokens Stored response retrieved',
    ]);
    assert.deepEqual(await tenant.logged(), ['create', 'read', 'update']);
  });

  test('400: a key that is none, under the name of its header as it was written', async () => {
    const tenant = await tenants();
    const { socket, answer } = await connectTo(tenant.vault.url);
    const lines = [
      'POST /tokens HTTP/1.1',
      'Host: localhost',
      `SVC-API-KEY: ${tenant.key}`,
      `SVC-Idempotency-KEY: ${'k'.repeat(256)}`,
      'Content-Type: application/json',
      'Content-Length: 25',
      'Connection: close',
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n{"type":"token","data":1}`);
    const text = await answer;
    assert.match(text, /^HTTP\/1\.1 400 /);
    assert.match(text, /"errors":\{"SVC-Idempotency-KEY":\["must have 1 to 255 characters/);
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('the longest key for the longest id is a key like any other', async () => {
    const tenant = await tenants();
    const id = '𝔸'.repeat(200);
    await tenant.token({ ...body, id });
    const path = `/tokens/${encodeURIComponent(id)}`;
    const sent = { body: { metadata: { n: '1' } }, ...under('ÿ'.repeat(255)) };
    const first = await tenant.send('PATCH', path, sent);
    assert.equal(first.status, 200, first.text);
    assert.equal((await tenant.send('PATCH', path, sent)).text, first.text);
    assert.deepEqual(await tenant.logged(), ['create', 'read', 'update']);
  });

  test('each session has keys of its own', async () => {
    const tenant = await tenants();
    const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = async () => {
      const { session_key, nonce } = (await tenant.send('POST', '/sessions', { key: open })).body;
      const grant = { nonce, permissions: ['token:create'] };
      const done = await tenant.send('POST', '/sessions/authorize', { body: grant });
      assert.equal(done.status, 200, done.text);
      return session_key;
    };
    const keys = [await session(), await session()];
    const create = (key: string) => tenant.send('POST', '/tokens', { key, body, ...under('k') });
    const ids = [];
    for (const key of [...keys, ...keys]) ids.push((await create(key)).body.id);
    assert.ok(ids[0]);
    assert.notEqual(ids[0], ids[1]);
    assert.deepEqual(ids.slice(2), ids.slice(0, 2));
  });

  test('on two servers, a request whose repetition must fail is answered, not refused', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    for (const id of ['one', 'two', 'three']) {
      const sent = { key: tenant.key, body: { ...body, id }, ...under(id) };
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          (index % 2 === 0 ? vault : second).send('POST', '/tokens', sent),
        ),
      );
      for (const { status, text } of answers.filter((answer) => answer.status !== 201)) {
        assert.equal(status, 409);
        assert.match(text, /still being processed/);
      }
      assert.ok(answers.some(({ status }) => status === 201));
    }
    assert.equal((await tenant.counts())['tokens'], 3);
  });

  test('on two servers, a key that is a day old has one new effect', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: { n: 0 } });
    const patch = { key: tenant.key, body: { metadata: { a: 'b' } }, ...under('k') };
    const create = { key: tenant.key, body, ...under('k') };
    const race = () =>
      Promise.all(
        [vault, second, vault, second].flatMap((one) => [
          one.send('POST', '/tokens', create),
          one.send('PATCH', '/tokens/own', patch),
        ]),
      );
    for (const version of [2, 3]) {
      const answers = await race();
      const statuses = new Set(answers.map(({ status }) => status));
      assert.deepEqual(statuses.difference(new Set([200, 201, 409])), new Set());
      const rows = await tenant.rows('tokens');
      assert.equal(rows.length, version);
      assert.equal(rows.find(({ token_id }) => token_id === 'own')?.version, version);
      vault.clock.advance(day + 1);
    }
    assert.equal((await tenant.counts())['replies'], 2);
  });
});
