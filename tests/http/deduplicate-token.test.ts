/** Deduplication: equal values find the token that already holds them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';

const card = { type: 'card', data: visa, deduplicate_token: true };

onBothEngines('Deduplication', (engine) => {
  const tenants = tenantsOf(engine);

  test('201: an equal value answers with the token that holds it, untouched', async () => {
    const tenant = await tenants();
    const first = await tenant.token({ ...card, metadata: { k: 'first' } });
    const before = await tenant.rows('tokens');
    const again = await tenant.token({
      ...card,
      id: 'another',
      data: { ...visa, expiration_year: 2031 },
      metadata: { k: 'second' },
      containers: ['/elsewhere/'],
    });
    assert.deepEqual(again.body, {
      ...first.body,
      _extras: { deduplicated: true, deduplication_behavior: 'read_existing' },
    });
    assert.equal(again.headers.get('location'), first.headers.get('location'));
    assert.deepEqual(await tenant.rows('tokens'), before);
    assert.deepEqual(await tenant.logged(), ['create', 'read']);
  });

  test('201: without the flag equal values are two tokens, with it a plain one is found', async () => {
    const tenant = await tenants();
    const plain = { type: 'card', data: visa };
    const first = await tenant.token(plain);
    const second = await tenant.token(plain);
    assert.notEqual(second.body.id, first.body.id);
    const third = await tenant.token(card);
    assert.equal(third.body._extras.deduplicated, true);
    assert.ok([first.body.id, second.body.id].includes(third.body.id));
  });

  test('201: the request overrides the setting of the tenant, both ways', async () => {
    const tenant = await tenants();
    await tenant.set({ deduplicate_tokens: 'true' });
    const plain = { type: 'card', data: visa };
    const first = await tenant.token(plain);
    assert.equal((await tenant.token(plain)).body.id, first.body.id);
    const apart = await tenant.token({ ...plain, deduplicate_token: false });
    assert.notEqual(apart.body.id, first.body.id);
    assert.deepEqual(apart.body._extras, { deduplicated: false });
  });

  test('201: another type, tenant or fingerprint is another value', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const found = [
      await tenant.token(card),
      await tenant.token({ ...card, type: 'network_token' }),
      await tenant.token({ ...card, data: mastercard }),
      await tenant.token({ ...card, fingerprint_expression: 'x{{ data.number }}' }),
      await other.token(card),
    ];
    assert.deepEqual(
      found.map(({ body }) => body._extras.deduplicated),
      [false, false, false, false, false],
    );
  });

  test('201: whoever knows a value cannot plant a token for those who create it later', async () => {
    const tenant = await tenants();
    const { body: known } = await tenant.token({ ...card, type: 'network_token' });
    const planted = async (given: object) => (await tenant.token({ ...card, ...given })).body.id;
    const constant = { data: mastercard, fingerprint_expression: visa.number };
    const forCards = [
      await planted({ ...constant }),
      await planted({ ...constant, deduplicate_token: false }),
      await planted({ ...constant, containers: ['/elsewhere/'] }),
    ];
    const first = await tenant.token(card);
    assert.equal(first.body._extras.deduplicated, false);
    assert.equal(forCards.includes(first.body.id), false);
    const own = { ...card, fingerprint_expression: 'x{{ data.number }}' };
    const copied = await planted({ data: mastercard, fingerprint_expression: `x${visa.number}` });
    assert.notEqual((await tenant.token(own)).body.id, copied);
    const { body: third } = await tenant.token({ ...card, type: 'network_token' });
    assert.equal(third.id, known.id);
  });

  test('201: the default expression written out is the default expression', async () => {
    const tenant = await tenants();
    const written = { ...card, fingerprint_expression: '{{ data.number }}' };
    const { body: token } = await tenant.token(card);
    assert.equal((await tenant.token(written)).body.id, token.id);
    await tenant.send('DELETE', `/tokens/${token.id}`);
    const { body: other } = await tenant.token(written);
    assert.notEqual(other.id, token.id);
    assert.equal((await tenant.token(card)).body.id, other.id);
  });

  test('201: it is stored as the default is, so both at the same moment make one token', async () => {
    const tenant = await tenants();
    const written = { ...card, fingerprint_expression: '{{ data.number }}' };
    const answers = await Promise.all(
      [card, written, { ...card, fingerprint_expression: null }, written, card].map((body) =>
        tenant.send('POST', '/tokens', { body }),
      ),
    );
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    const { id } = await tenant.token(written).then(({ body }) => body);
    const body = { fingerprint_expression: '{{ data.number }}' };
    const patched = await tenant.send('PATCH', `/tokens/${id}`, { body });
    assert.equal(patched.body.fingerprint_expression, '{{ data.number }}');
    const rows = await tenant.rows('tokens');
    assert.deepEqual(
      rows.map((row) => row.fingerprint_expression),
      [null],
    );
  });

  test('201: it is an order for a fingerprint where the tenant makes none', async () => {
    const tenant = await tenants();
    await tenant.set({ fingerprint_tokens: 'false' });
    const expression = { fingerprint_expression: '{{ data.number }}' };
    const { body: created } = await tenant.token({ type: 'card', data: visa, ...expression });
    const { body: plain } = await tenant.token({ type: 'card', data: visa });
    assert.equal(plain.fingerprint, undefined);
    const patched = await tenant.send('PATCH', `/tokens/${plain.id}`, { body: expression });
    assert.equal(patched.body.fingerprint, created.fingerprint);
    assert.ok(created.fingerprint);
  });

  test('201: however many planted tokens do not hide the token of a value', async () => {
    const tenant = await tenants();
    const planted = { type: 'card', data: mastercard, fingerprint_expression: visa.number };
    await tenant.send('POST', '/tokenize', { body: Array.from({ length: 101 }, () => planted) });
    const fingerprints = new Set((await tenant.rows('tokens')).map((row) => row.fingerprint));
    assert.equal(fingerprints.size, 1);
    const { body: first } = await tenant.token({ ...planted, deduplicate_token: true });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => tenant.send('POST', '/tokens', { body: card })),
    );
    assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
    assert.notEqual(answers[0]?.body.id, first.id);
    assert.equal(answers[0]?.body.fingerprint, first.fingerprint);
  });

  test('400: one request finds existing tokens of 4 MiB together, and no more', async () => {
    const tenant = await tenants();
    const deduplicated = (index: number) => ({
      type: 'token',
      fingerprint_expression: `constant ${index}`,
      deduplicate_token: true,
    });
    const large = 'x'.repeat(1_040_000);
    const ids: unknown[] = [];
    for (let index = 0; index < 5; index++) {
      ids.push((await tenant.token({ ...deduplicated(index), data: large })).body.id);
    }
    const found = (count: number) =>
      tenant.send('POST', '/tokenize', {
        body: ids.slice(0, count).map((_, index) => ({ ...deduplicated(index), data: 'small' })),
      });
    const four = await found(4);
    assert.equal(four.status, 200);
    assert.deepEqual(
      four.body.map(({ id }: { id: unknown }) => id),
      ids.slice(0, 4),
    );
    const five = await found(5);
    assert.equal(five.status, 400);
    assert.deepEqual(Object.keys(five.body.errors), ['[4].deduplicate_token']);
    const { counts } = tenant;
    assert.equal((await counts())['tokens'], 5);
  });

  test('201: a caller who may not read the token learns only of its existence', async () => {
    const tenant = await tenants();
    const hidden = { ...card, containers: ['/hidden/'], metadata: { k: 'v' } };
    const { body: token } = await tenant.token(hidden);
    const creator = await tenant.holder({ permissions: ['token:create'] });
    const { body } = await tenant.send('POST', '/tokens', { key: creator, body: card });
    const { id, tenant_id, type, fingerprint, containers } = token;
    const _extras = { deduplicated: true, deduplication_behavior: 'read_existing' };
    assert.deepEqual(body, { id, tenant_id, type, fingerprint, containers, _extras });
  });

  test('201: what a reader is shown follows the transform of the read', async () => {
    const tenant = await tenants();
    await tenant.token(card);
    const shown = async (transform: string) => {
      const rule = { container: '/', permissions: ['token:create'], transform: 'reveal' };
      const read = { ...rule, permissions: ['token:read'], transform };
      const key = await tenant.application({
        rules: [
          { ...rule, priority: 1 },
          { ...read, priority: 2 },
        ],
      });
      return (await tenant.send('POST', '/tokens', { key, body: card })).body;
    };
    assert.deepEqual((await shown('reveal')).data, visa);
    assert.deepEqual((await shown('mask')).data, {
      number: 'XXXXXXXXXXXX4242',
      expiration_month: 12,
      expiration_year: 2030,
    });
    const redacted = await shown('redact');
    assert.equal('data' in redacted || 'card' in redacted, false);
    assert.deepEqual(redacted.metadata, undefined);
    assert.equal(redacted._extras.deduplicated, true);
  });

  test('403: who may not create in the container finds nothing by guessing values', async () => {
    const tenant = await tenants();
    await tenant.token(card);
    const key = await tenant.holder({ container: '/other/' });
    const denied = await tenant.send('POST', '/tokens', { key, body: card });
    assert.equal(denied.status, 403);
    assert.deepEqual(await tenant.logged(), ['create', 'create denied']);
  });

  test('201: update_existing merges data and metadata and finds the token by its new terms', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const created = await tenant.token({
      ...card,
      data: { number: visa.number, expiration_year: 2029 },
      search_indexes: ['{{ data.number }}', '{{ data.expiration_year }}'],
    });
    const before = await tenant.rows('search_terms');
    const { body } = await tenant.token({
      ...card,
      mask: '{{ data.number }}',
      search_indexes: [],
      containers: ['/elsewhere/'],
    });
    assert.deepEqual(body._extras, {
      deduplicated: true,
      deduplication_behavior: 'update_existing',
    });
    assert.deepEqual(body.data, visa);
    for (const name of ['id', 'mask', 'search_indexes', 'containers', 'fingerprint']) {
      assert.deepEqual(body[name], created.body[name], name);
    }
    assert.equal(typeof body.modified_at, 'string');
    const terms = (await tenant.rows('search_terms')).map(({ term }) => term);
    assert.equal(terms.length, 2);
    assert.equal(before.filter(({ term }) => terms.includes(term)).length, 1);
    assert.deepEqual(await tenant.logged(), ['create', 'update']);
    const read = await tenant.send('GET', `/tokens/${body.id}`);
    assert.deepEqual(read.body.data, visa);
    await tenant.token({ ...card, metadata: { kept: 'a', changed: 'b' } });
    const merged = await tenant.token({ ...card, metadata: { changed: 'c' } });
    assert.deepEqual(merged.body.metadata, { kept: 'a', changed: 'c' });
  });

  test('201: update_existing leaves alone what the caller may neither update nor create', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const { body } = await tenant.token({ ...card, metadata: { owner: 'a' } });
    const before = await tenant.rows('tokens');
    const change = {
      ...card,
      data: { ...visa, expiration_year: 2099, cvc: '999' },
      metadata: { owner: 'b' },
      containers: ['/other/'],
    };
    const create = async (permission: string, container: string) => {
      const permissions = [permission, 'token:read'];
      const rule = { container, permissions, transform: 'reveal', priority: 2 };
      const other = { ...rule, container: '/other/', permissions: ['token:create'], priority: 1 };
      const key = await tenant.application({ rules: [other, rule] });
      return tenant.send('POST', '/tokens', { key, body: change });
    };
    const elsewhere = await create('token:update', '/elsewhere/');
    assert.equal(elsewhere.status, 201);
    assert.equal(elsewhere.body.id, body.id);
    assert.equal('data' in elsewhere.body || 'metadata' in elsewhere.body, false);
    assert.deepEqual(elsewhere.body._extras, {
      deduplicated: true,
      deduplication_behavior: 'read_existing',
    });
    assert.deepEqual(await tenant.rows('tokens'), before);
    assert.deepEqual(await tenant.logged(), ['create', 'read']);
    for (const permission of ['token:update', 'token:create']) {
      const merged = await create(permission, body.containers[0]);
      assert.equal(merged.body._extras.deduplication_behavior, 'update_existing', permission);
    }
    assert.deepEqual(await tenant.logged(), ['create', 'read', 'update', 'update']);
  });

  test('400: update_existing keeps the limits of a token', async () => {
    const tenant = await tenants();
    await tenant.set({ token_deduplication_behavior: 'update_existing' });
    const metadata = (prefix: string) =>
      Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`${prefix}${index}`, 'v']));
    await tenant.token({ ...card, metadata: metadata('a') });
    const body = { ...card, metadata: metadata('b') };
    const refused = await tenant.send('POST', '/tokens', { body });
    assert.equal(refused.status, 400);
    assert.deepEqual(Object.keys(refused.body.errors), ['metadata']);
  });

  for (const behavior of ['read_existing', 'update_existing']) {
    test(`201: any number of concurrent creates yield one token, ${behavior}`, async () => {
      const tenant = await tenants();
      await tenant.set({ token_deduplication_behavior: behavior });
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          tenant.send('POST', '/tokens', { body: { ...card, metadata: { [`k${index}`]: 'v' } } }),
        ),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
      assert.equal(new Set(answers.map(({ body }) => body.id)).size, 1);
      assert.equal(answers.filter(({ body }) => !body._extras.deduplicated).length, 1);
      const [token] = await tenant.rows('tokens');
      const keys = Object.keys(JSON.parse(token?.metadata ?? '{}'));
      assert.equal(keys.length, behavior === 'update_existing' ? 40 : 1);
    });
  }
});
