/** Requests whose expressions want more than a request may have: bounded, named, and never a 500. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messagesMax } from '../../src/base/validation-errors.ts';
import { dataLengthMax, searchIndexesLengthMax } from '../../src/tokens/contents/contents.ts';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const token = { type: 'token', data: 'x' };
const answerLengthMax = 50_000;

onBothEngines('Hostile requests', (engine) => {
  const tenants = tenantsOf(engine);

  test('400: of too many search indexes and pairs of metadata only the first are looked at', async () => {
    const tenant = await tenants();
    const search_indexes = Array.from({ length: 100_000 }, () => '{{');
    const metadata = Object.fromEntries(
      Array.from({ length: 8000 }, (_, at) => [String(at).padStart(101, 'k'), 'v']),
    );
    const refused = await tenant.send('POST', '/tokens', { body: { ...token, search_indexes } });
    assert.equal(refused.status, 400);
    assert.deepEqual(Object.keys(refused.body.errors), [
      'search_indexes',
      ...Array.from({ length: 10 }, (_, at) => `search_indexes[${at}]`),
    ]);
    const keys = await tenant.send('POST', '/tokens', { body: { ...token, metadata } });
    assert.equal(keys.status, 400);
    assert.ok(keys.text.length < answerLengthMax);
  });

  test('400: an answer names many mistakes, but not without end', async () => {
    const tenant = await tenants();
    const unknown = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`unknown_${at}`, at]));
    const some = await tenant.send('POST', '/tokens', { body: { ...token, ...unknown(20) } });
    assert.deepEqual(Object.keys(some.body.errors), Object.keys(unknown(20)));
    const many = await tenant.send('POST', '/tokens', { body: { ...token, ...unknown(1000) } });
    assert.equal(many.status, 400);
    assert.equal(Object.keys(many.body.errors).length, messagesMax);
    const items = Array.from({ length: 900 }, () => ({ type: 'no type', data: 'x' }));
    const list = await tenant.send('POST', '/tokenize', { body: items });
    assert.equal(list.status, 400);
    assert.equal(Object.keys(list.body.errors).length, messagesMax);
  });

  test('400: data that is short as it was sent and long as it is kept', async () => {
    const tenant = await tenants();
    const list = (count: number) => `[${Array.from({ length: count }, () => '1e15').join(',')}]`;
    const sent = (data: string) => `{"type":"token","data":${data}}`;
    const most = Math.floor((dataLengthMax - 1) / 17);
    assert.equal((await tenant.send('POST', '/tokens', { body: sent(list(most)) })).status, 201);
    const permissions = ['token:create', 'token-intent:create'];
    const key = await tenant.application({ permissions });
    for (const path of ['/tokens', '/token-intents', '/tokenize']) {
      const body = sent(list(most + 1));
      const refused = await tenant.send('POST', path, { key, body });
      assert.equal(refused.status, 400, path);
      assert.deepEqual(refused.body.errors, {
        data: [`must have at most ${dataLengthMax} characters as JSON`],
      });
    }
    assert.equal((await tenant.counts())['tokens'], 1);
  });

  test('200: masks that cost too much together are left out, cheap ones among them are not', async () => {
    const tenant = await tenants();
    const dear = { type: 'token', data: 'x'.repeat(600_000), mask: '{{ data | reveal_last: 4 }}' };
    const count = 10;
    for (let made = 0; made < count; made++) {
      await tenant.token({ ...dear, fingerprint_expression: `${made}` });
      await tenant.token({ type: 'card', data: { number: '4242424242424242' } });
    }
    const key = await tenant.holder({ transform: 'mask', permissions: ['token:read'] });
    const failed = () =>
      tenant.vault.logged.filter(({ message }) => /stored mask could not/.test(message)).length;
    const before = failed();
    const listed = await tenant.send('GET', `/v2/tokens?size=${2 * count}`, { key });
    assert.equal(listed.status, 200);
    const tokens: { type: string; data?: unknown }[] = listed.body.data;
    const shown = (type: string) =>
      tokens.filter((one) => one.type === type && one.data !== undefined).length;
    assert.equal(tokens.length, 2 * count);
    assert.equal(shown('card'), count);
    assert.ok(shown('token') > 0 && shown('token') < count);
    assert.equal(failed() - before, count - shown('token'));
    const { id } = listed.body.data.find((one: { type: string }) => one.type === 'token');
    assert.equal((await tenant.send('GET', `/tokens/${id}`, { key })).body.data.length, 600_000);
  });

  test('400: a creation whose expressions cost too much together', async () => {
    const tenant = await tenants();
    const search_indexes = Array.from(
      { length: 10 },
      (_, at) => `{{ data | reveal_last: 4 | size | plus: ${at} }}`,
    );
    const body = { ...token, data: 'x'.repeat(600_000), search_indexes };
    const refused = await tenant.send('POST', '/tokens', { body });
    assert.equal(refused.status, 400);
    assert.match(refused.text, /more than is left of the \d+ units of work of this request/);
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('400: two expressions that a creation may evaluate, and a third that is too much with them', async () => {
    const tenant = await tenants();
    const indexes = (count: number) =>
      Array.from({ length: count }, (_, at) => `{{ data | reveal: ${at + 1} | size }}`);
    const sent = (count: number) => ({
      body: { ...token, data: 'x'.repeat(500_000), mask: 'x', search_indexes: indexes(count) },
    });
    assert.equal((await tenant.send('POST', '/tokens', sent(2))).status, 201);
    const refused = await tenant.send('POST', '/tokens', sent(3));
    assert.equal(refused.status, 400);
    assert.deepEqual(Object.keys(refused.body.errors), ['search_indexes[2]']);
    assert.match(refused.text, /more than is left of the 12000000 units/);
    assert.equal((await tenant.counts())['tokens'], 1);
  });

  test('400: search indexes that are too long together', async () => {
    const tenant = await tenants();
    const indexes = (length: number) => {
      const long = Array.from({ length: 3 }, (_, at) => `${at}`.padEnd(1500, 'x'));
      return [...long, 'y'.repeat(length - 4500)];
    };
    const sent = (length: number) => ({ body: { ...token, search_indexes: indexes(length) } });
    const created = await tenant.send('POST', '/tokens', sent(searchIndexesLengthMax));
    assert.equal(created.status, 201);
    const long = sent(searchIndexesLengthMax + 1);
    const path = `/tokens/${created.body.id}`;
    for (const [method, target, options] of [
      ['POST', '/tokens', long],
      ['PATCH', path, { body: { search_indexes: indexes(searchIndexesLengthMax + 1) } }],
    ] as const) {
      const refused = await tenant.send(method, target, options);
      assert.equal(refused.status, 400);
      assert.deepEqual(refused.body.errors, {
        search_indexes: [`must have at most ${searchIndexesLengthMax} characters together`],
      });
    }
    assert.equal((await tenant.counts())['tokens'], 1);
  });
});
