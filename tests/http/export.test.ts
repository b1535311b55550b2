/** `GET /tokens/export`: all that the key may read, as it may read it, and a last line that says it was all. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { rowsFirst } from '../../src/http/limits/part-rows.ts';
import { batchBytesMax, batchTokensMax } from '../../src/tokens/export.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Lines, linesOfAnswer, linesSent } from '../support/lines.ts';
import { beginRequest } from '../support/raw-request.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

async function exportOf(tenant: TestTenant, query = '', key = tenant.key): Promise<Lines> {
  const answer = await tenant.send('GET', `/tokens/export${query}`, { key });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/x-ndjson');
  return linesOfAnswer(answer);
}

async function fill(tenant: TestTenant, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, at) => ({
    id: `token-${at}`,
    type: 'token',
    data: at,
  }));
  const answer = await tenant.send('POST', '/tokens/bulk', linesSent(lines));
  assert.equal(linesOfAnswer(answer).filter(({ status }) => status === 201).length, count);
}

onBothEngines('GET /tokens/export 200', (engine) => {
  const tenants = tenantsOf(engine);

  test('every token comes once, newest first, as GET /v2/tokens shows it, over several batches', async () => {
    const tenant = await tenants();
    const count = 2 * batchTokensMax;
    await fill(tenant, count);
    await tenant.token({ type: 'card', data: card, metadata: { owner: 'Ada' } });
    const lines = await exportOf(tenant);
    assert.deepEqual(lines.at(-1), { exported: count + 1 });
    assert.equal(new Set(lines.slice(0, -1).map(({ id }) => id)).size, count + 1);
    const page = await tenant.send('GET', '/v2/tokens?size=100');
    assert.deepEqual(lines.slice(0, 100), page.body.data);
  });

  test('each token has its entry before it leaves, and each batch one of its own', async () => {
    const tenant = await tenants();
    await fill(tenant, batchTokensMax + 1);
    await exportOf(tenant);
    const logged = (await tenant.rows('logs')).filter(
      ({ operation, entity_type }) => operation !== 'create' && entity_type !== 'alert',
    );
    const reads = logged.filter(({ operation }) => operation === 'read');
    assert.equal(new Set(reads.map(({ entity_id }) => entity_id)).size, batchTokensMax + 1);
    const exports = logged.filter(({ operation }) => operation === 'export');
    assert.ok(exports.length >= 2, 'no batch has all of them');
    // How many tokens a later batch has depends on how fast the machine is at that moment.
    const laterMax = batchTokensMax + 1 - rowsFirst;
    assert.ok(exports.length <= 1 + laterMax, `${exports.length} batches`);
    for (const { message, entity_id } of exports) {
      assert.deepEqual([message, entity_id], ['Tokens exported', tenant.id]);
    }
  });

  test('large tokens come in smaller batches, so that few of them are in memory at once', async () => {
    const tenant = await tenants();
    const data = 'x'.repeat(900_000);
    for (let at = 0; at < 12; at += 1) await tenant.token({ type: 'token', data });
    await fill(tenant, 2);
    const lines = await exportOf(tenant);
    assert.deepEqual(lines.at(-1), { exported: 14 });
    assert.ok(lines.slice(2, -1).every((line) => line.data === data));
    const batches = (await tenant.logged()).filter((operation) => operation === 'export');
    const inBatch = Math.ceil(batchBytesMax / data.length);
    assert.ok(batches.length >= Math.ceil(12 / inBatch), `${batches.length} batches`);
  });

  test('an empty vault is a count of none', async () => {
    const tenant = await tenants();
    assert.deepEqual(await exportOf(tenant), [{ exported: 0 }]);
  });

  test('a key gets what its rules let it read, as they let it', async () => {
    const tenant = await tenants();
    await tenant.token({ type: 'card', data: card, containers: ['/mine/'] });
    await tenant.token({ type: 'card', data: card, containers: ['/others/'] });
    const key = await tenant.holder({ container: '/mine/', transform: 'mask' });
    const [only, last] = await exportOf(tenant, '', key);
    assert.deepEqual(only.containers, ['/mine/']);
    assert.equal(only.data.number, 'XXXXXXXXXXXX4242');
    assert.deepEqual(last, { exported: 1 });
    const blind = await tenant.holder({ transform: 'redact' });
    assert.equal((await exportOf(tenant, '', blind))[0].data, undefined);
  });

  test('filters by container, type, fingerprint and metadata, together', async () => {
    const tenant = await tenants();
    const metadata = { owner: 'Ada' };
    const wanted = await tenant.token({ type: 'card', data: card, containers: ['/a/'], metadata });
    await tenant.token({ type: 'card', data: card, containers: ['/b/'], metadata });
    await tenant.token({ type: 'token', data: 'x', containers: ['/a/'], metadata });
    await tenant.token({ type: 'card', data: card, containers: ['/a/'] });
    const { fingerprint, id } = wanted.body;
    const query = `?container=/a/&type=card&fingerprint=${fingerprint}&metadata.owner=Ada`;
    const [only, last] = await exportOf(tenant, query);
    assert.deepEqual([only.id, last], [id, { exported: 1 }]);
  });

  test('what is created and deleted meanwhile loses and doubles nothing else', async () => {
    const tenant = await tenants();
    const count = 4 * batchTokensMax;
    await fill(tenant, count);
    const gone = ['token-0', 'token-1', 'token-2'];
    const [lines] = await Promise.all([
      exportOf(tenant),
      ...gone.map((id) => tenant.send('DELETE', `/tokens/${id}`)),
      ...gone.map(() => tenant.token({ type: 'token', data: 'new' })),
    ]);
    const ids = lines.slice(0, -1).map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length);
    const expected = Array.from({ length: count }, (_, at) => `token-${at}`);
    const missing = expected.filter((id) => !ids.includes(id));
    assert.deepEqual(
      missing.filter((id) => !gone.includes(id)),
      [],
    );
  });

  test('HEAD does none of the work', async () => {
    const tenant = await tenants();
    const answer = await tenant.send('HEAD', '/tokens/export');
    assert.notEqual(answer.status, 200);
    assert.equal((await tenant.logged()).filter((what) => what === 'export').length, 0);
  });
});

onBothEngines('GET /tokens/export', (engine) => {
  const tenants = tenantsOf(engine);

  test('400 for a filter that is none, before anything is read', async () => {
    const tenant = await tenants();
    for (const [query, attribute] of [
      ['container=no', 'container'],
      ['type=none', 'type'],
      ['metadata=no', 'metadata'],
      ['size=10', 'size'],
    ]) {
      const answer = await tenant.send('GET', `/tokens/export?${query}`);
      assert.equal(answer.status, 400, answer.text);
      assert.ok(answer.body.errors[attribute ?? ''], answer.text);
    }
    assert.deepEqual(await tenant.logged(), []);
  });

  test('401 without a key, 403 without token:read, at all or in the container', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.send('GET', '/tokens/export', { key: 'none' })).status, 401);
    const creator = await tenant.holder({ permissions: ['token:create'] });
    assert.equal((await tenant.send('GET', '/tokens/export', { key: creator })).status, 403);
    const key = await tenant.holder({ container: '/mine/' });
    const other = await tenant.send('GET', '/tokens/export?container=/others/', { key });
    assert.equal(other.status, 403);
    assert.deepEqual(await tenant.logged(), ['read denied', 'read denied']);
  });

  test('a token cannot take the name of the route as its id', async () => {
    const tenant = await tenants();
    const body = { id: 'export', type: 'token', data: 'x' };
    const answer = await tenant.send('POST', '/tokens', { body });
    assert.equal(answer.status, 400);
    assert.ok(answer.body.errors.id);
  });

  test('a reader that stops reading stops the work: no entry is written for what is not asked for', async () => {
    const tenant = await tenants();
    const data = 'x'.repeat(20_000);
    const lines = Array.from({ length: 4 * batchTokensMax }, () => ({ type: 'token', data }));
    assert.equal((await tenant.send('POST', '/tokens/bulk', linesSent(lines))).status, 200);
    const { socket } = await beginRequest({
      url: tenant.vault.url,
      method: 'GET',
      path: '/tokens/export',
      headers: { 'svc-api-key': tenant.key },
      length: 0,
    });
    await once(socket, 'data');
    socket.pause();
    const exports = async () =>
      (await tenant.logged()).filter((operation) => operation === 'export').length;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy();
    await closed;
    assert.ok((await exports()) < 4, 'the work went on without a reader');
  });
});
