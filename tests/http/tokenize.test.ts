/** POST /tokenize. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

onBothEngines('POST /tokenize', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the answer has the shape of the body, with ids for values and tokens for requests', async () => {
    const tenant = await tenants();
    const body = {
      first: 'Ada',
      age: 36,
      member: true,
      nothing: null,
      card: { type: 'card', data: card, id: 'my card', metadata: { k: 'v' } },
      tags: ['x', { type: 'token', data: { deep: [1] } }, []],
      type: 'a name of the caller',
      __proto__: {},
    };
    const text = JSON.stringify(body).replace('"first"', '"__proto__":"own","first"');
    const answer = await tenant.send('POST', '/tokenize', { body: text });
    assert.equal(answer.status, 200, answer.text);
    const { first, age, member, nothing, card: whole, tags, type } = answer.body;
    for (const id of [first, age, member, tags[0], type]) assert.match(id, uuid);
    assert.equal(nothing, null);
    assert.deepEqual(
      [whole.id, whole.data, whole._extras],
      ['my card', card, { deduplicated: false }],
    );
    assert.deepEqual(tags[1].data, { deep: [1] });
    assert.deepEqual(tags[2], []);
    assert.ok(Object.hasOwn(answer.body, '__proto__'));
    const stored = await tenant.send('GET', `/tokens/${age}`);
    assert.deepEqual(
      [stored.body.data, stored.body.type, stored.body.containers],
      [36, 'token', ['/general/high/']],
    );
    assert.equal((await tenant.rows('tokens')).length, 8);
    assert.deepEqual(await tenant.logged(), [...Array(8).fill('create'), 'read']);
  });

  test('200: any JSON at the root, also what has nothing to tokenize', async () => {
    const tenant = await tenants();
    for (const body of ['"text"', '7', 'false']) {
      const answer = await tenant.send('POST', '/tokenize', { body });
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/);
      assert.match(answer.body, uuid);
    }
    const list = await tenant.send('POST', '/tokenize', { body: ['a', null] });
    assert.deepEqual([list.body.length, list.body[1]], [2, null]);
    for (const body of ['null', '{}', '[{"a":[null]}]']) {
      assert.equal((await tenant.send('POST', '/tokenize', { body })).text, body);
    }
    assert.equal((await tenant.rows('tokens')).length, 4);
  });

  test('200: equal values of one request become one token where they are deduplicated', async () => {
    const tenant = await tenants();
    const request = { type: 'token', data: 'same', deduplicate_token: true };
    const body = [request, { ...request, metadata: { k: 'v' } }, { type: 'token', data: 'same' }];
    const [first, second, plain] = (await tenant.send('POST', '/tokenize', { body })).body;
    assert.equal(second.id, first.id);
    assert.deepEqual([first._extras.deduplicated, second._extras.deduplicated], [false, true]);
    assert.notEqual(plain.id, first.id);
    const again = await tenant.send('POST', '/tokenize', { body: [request] });
    assert.equal(again.body[0].id, first.id);
    await tenant.set({ deduplicate_tokens: 'true' });
    const [one, two] = (await tenant.send('POST', '/tokenize', { body: ['v', 'v'] })).body;
    assert.equal(one, two);
  });

  test('200: update_existing merges what equal values of one request bring, stored or new', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const request = (metadata: object, data: object = card) => ({
      type: 'card',
      data,
      deduplicate_token: true,
      metadata,
    });
    const body = [request({ a: '1' }), request({ b: '2' }, { ...card, expiration_year: 2031 })];
    const [{ id }] = (await tenant.send('POST', '/tokenize', { body })).body;
    const made = (await tenant.send('GET', `/tokens/${id}`)).body;
    assert.deepEqual([made.metadata, made.data.expiration_year], [{ a: '1', b: '2' }, 2031]);
    assert.equal(made.modified_at, undefined);
    await tenant.send('POST', '/tokenize', { body: [request({ c: '3' }), request({ a: '4' })] });
    const merged = (await tenant.send('GET', `/tokens/${id}`)).body;
    assert.deepEqual(merged.metadata, { a: '4', b: '2', c: '3' });
    const found = await tenant.send('GET', '/v2/tokens?metadata.a=4&metadata.c=3');
    assert.deepEqual(
      found.body.data.map((token: { id: string }) => token.id),
      [id],
    );
    assert.equal((await tenant.send('GET', '/v2/tokens?metadata.a=1')).body.data.length, 0);
  });

  test('200: as many tokens as the Tokenize Limit; 400 with one more, naming the limit', async () => {
    const tenant = await tenants();
    const values = Array.from({ length: 1000 }, (_, index) => index);
    const most = await tenant.send('POST', '/tokenize', { body: values });
    assert.equal(most.status, 200);
    assert.equal(new Set(most.body).size, 1000);
    const over = await tenant.send('POST', '/tokenize', { body: [...values, 'x'] });
    assert.equal(over.status, 400);
    assert.match(over.body.errors.body[0], /more than 1000 tokens.* 1000$/);
    assert.equal((await tenant.rows('tokens')).length, 1000);
  });

  test('400: beyond the Tokenize Limit no request is looked at any more', async () => {
    const tenant = await tenants();
    const flawed = { type: 'token', data: 1, unknown: 1 };
    const values = (count: number) => Array.from({ length: count }, (_, index) => index);
    const within = await tenant.send('POST', '/tokenize', { body: [...values(999), flawed] });
    assert.deepEqual(Object.keys(within.body.errors), ['[999].unknown']);
    for (const body of [
      [...values(1001), flawed],
      new Array(1001).fill({ type: 'card', data: 1 }),
    ]) {
      const over = await tenant.send('POST', '/tokenize', { body });
      assert.equal(over.status, 400);
      assert.deepEqual(Object.keys(over.body.errors), ['body']);
    }
    assert.equal((await tenant.rows('tokens')).length, 0);
  });

  test('200: one idempotency key makes the tokens once', async () => {
    const tenant = await tenants();
    const sent = { body: ['a', 'b'], headers: { 'svc-idempotency-key': 'k' } };
    const first = await tenant.send('POST', '/tokenize', sent);
    const second = await tenant.send('POST', '/tokenize', sent);
    assert.deepEqual(second.body, first.body);
    assert.equal((await tenant.rows('tokens')).length, 2);
  });

  test('400: a body without a byte, which is no JSON', async () => {
    const tenant = await tenants();
    const answer = await tenant.send('POST', '/tokenize', { body: '' });
    assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [400, ['body']]);
    assert.deepEqual(await tenant.logged(), []);
  });

  test('400: everything that is wrong is named by its path, and nothing is stored', async () => {
    const tenant = await tenants();
    const secret = '4242424242424241';
    const wrong: [unknown, string[]][] = [
      [{ a: 'x', b: [{ type: 'card', data: { number: secret } }] }, ['b[0].data.number']],
      [
        { a: { type: 'crad', data: 1 }, b: { c: { type: 'token', data: 1, containers: ['x'] } } },
        ['a.type', 'b.c.containers[0]'],
      ],
      [{ a: { type: 'token', data: 1, expires: '2030' } }, ['a.expires']],
      [[{ type: 'token', data: 1, metadata: { k: 1 } }], ['[0].metadata.k']],
      [[{ type: 'token', data: null }], ['[0].data']],
      [[{ type: 'card', encrypted: secret }], ['[0].encrypted']],
      [[{ type: 'token', data: 1, search_indexes: ['{{ data.x }}'] }], ['[0].search_indexes[0]']],
      [[{ token_intent_id: 'x' }], ['[0].token_intent_id']],
      [{ [secret]: { type: 'crad', data: 1 } }, ['*.type']],
    ];
    for (const [body, paths] of wrong) {
      const answer = await tenant.send('POST', '/tokenize', { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors).sort(), paths);
      assert.ok(!answer.text.includes(secret));
    }
    const deep = `${'['.repeat(65)}1${']'.repeat(65)}`;
    assert.equal((await tenant.send('POST', '/tokenize', { body: deep })).status, 400);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('400: an id that the request gives twice; 409: one that is taken', async () => {
    const tenant = await tenants();
    const named = (id: string, data = id) => ({ type: 'token', data, id });
    const twice = await tenant.send('POST', '/tokenize', {
      body: { a: named('one'), b: [named('two'), named('one', 'other')] },
    });
    assert.equal(twice.status, 400);
    assert.deepEqual(Object.keys(twice.body.errors), ['b[1].id']);
    const drawn = Array.from({ length: 3 }, () => ({
      type: 'token',
      data: 'Ada',
      id: '{{ data }}',
    }));
    assert.equal((await tenant.send('POST', '/tokenize', { body: drawn })).status, 400);
    await tenant.token(named('taken'));
    const taken = await tenant.send('POST', '/tokenize', { body: ['x', named('taken')] });
    assert.equal(taken.status, 409);
    assert.equal((await tenant.rows('tokens')).length, 1);
  });

  test('403: one container without token:create refuses all of it', async () => {
    const tenant = await tenants();
    const key = await tenant.holder({ container: '/general/' });
    const answer = await tenant.send('POST', '/tokenize', {
      key,
      body: ['x', { type: 'card', data: card }],
    });
    assert.equal(answer.status, 403);
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.deepEqual(await tenant.logged(), ['create denied']);
    const reader = await tenant.application({ permissions: ['token:read'] });
    assert.equal((await tenant.send('POST', '/tokenize', { key: reader, body: [] })).status, 403);
  });
});
