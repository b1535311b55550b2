/** The service's own headers: the trace id, and the prefixes under which clients send them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const token = { type: 'token', data: 1 };

onBothEngines('Headers', (engine) => {
  const tenants = tenantsOf(engine, { environment: { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' } });

  test('every answer has a trace id: the one sent, else a fresh one', async () => {
    const tenant = await tenants();
    const paths = ['/ping', '/tokens/missing', '/nowhere', '/tokens/%zz'];
    for (const path of paths) {
      const sent = await tenant.send('GET', path, { headers: { 'SVC-TRACE-ID': 'mine-1' } });
      assert.equal(sent.headers.get('svc-trace-id'), 'mine-1', path);
      const fresh = [await tenant.send('GET', path), await tenant.send('GET', path)];
      const ids = fresh.map(({ headers }) => headers.get('svc-trace-id'));
      for (const id of ids) assert.match(id ?? '', uuid, path);
      assert.notEqual(ids[0], ids[1]);
    }
  });

  test('a trace id that is too long or no token of printable characters is replaced', async () => {
    const tenant = await tenants();
    const kept = await tenant.send('GET', '/ping', {
      headers: { 'svc-trace-id': 'x'.repeat(100) },
    });
    assert.equal(kept.headers.get('svc-trace-id'), 'x'.repeat(100));
    for (const sent of ['', 'x'.repeat(101), 'two words', 'ü']) {
      const answer = await tenant.send('GET', '/ping', { headers: { 'svc-trace-id': sent } });
      assert.match(answer.headers.get('svc-trace-id') ?? '', uuid);
    }
  });

  test('the trace id of a request is in its log entry', async () => {
    const tenant = await tenants();
    const headers = { 'svc-trace-id': 'mine-2' };
    await tenant.send('POST', '/tokens', { body: token, headers });
    const [entry] = (await tenant.rows('logs')).filter(({ operation }) => operation === 'create');
    assert.ok(entry);
    const traces = (await tenant.rows('logs')).map(({ trace_id }) => trace_id);
    assert.ok(traces.includes('mine-2'));
  });

  test('another prefix works for every header, and the answer is under the same one', async () => {
    const tenant = await tenants();
    const headers = {
      'BT-API-KEY': tenant.key,
      'BT-TRACE-ID': 'theirs',
      'BT-IDEMPOTENCY-KEY': 'k',
    };
    const { vault } = tenant;
    const first = await vault.send('POST', '/tokens', { body: token, headers });
    assert.equal(first.status, 201);
    assert.equal(first.headers.get('bt-trace-id'), 'theirs');
    assert.equal(first.headers.get('svc-trace-id'), null);
    const again = await vault.send('POST', '/tokens', { body: token, headers });
    assert.equal(again.text, first.text);
    const own = await tenant.send('POST', '/tokens', {
      body: token,
      headers: { 'svc-idempotency-key': 'k' },
    });
    assert.equal(own.text, first.text);
    const missing = await vault.send('GET', '/tokens/missing', { headers });
    assert.equal(missing.status, 404);
    assert.equal(missing.headers.get('bt-trace-id'), 'theirs');
  });

  test('the own prefix comes first where both are sent', async () => {
    const tenant = await tenants();
    const headers = { 'BT-API-KEY': 'wrong', 'BT-TRACE-ID': 'theirs', 'SVC-TRACE-ID': 'own' };
    const answer = await tenant.send('POST', '/tokens', { body: token, headers });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get('svc-trace-id'), 'own');
  });

  test('401: a prefix that is not listed is no prefix', async () => {
    const tenant = await tenants();
    const headers = { 'XY-API-KEY': tenant.key };
    assert.equal((await tenant.vault.send('GET', '/tokens/some-id', { headers })).status, 401);
  });
});
