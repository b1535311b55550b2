/** POST /tokens: what is stored and answered, ids, and who may. Values that are refused: refuse-token. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, tenantsOf } from '../support/tenant.ts';
import { bank, visa } from '../support/values.ts';

const lastFour = '{{ data | reveal_last: 4 }}';
const personalIndexes = ['{{ data }}', "{{ data | replace: '-' }}", '{{ data | last4 }}'];

/** What a type brings where the request says nothing. */
const types = [
  {
    type: 'token',
    data: { any: ['thing', 1.5, true, null] },
    containers: ['/general/high/'],
    mask: undefined,
    fingerprint_expression: '{{ data | stringify }}',
  },
  ...['card', 'network_token'].map((type) => ({
    type,
    data: visa,
    containers: ['/pci/high/'],
    mask: {
      number: '{{ data.number | reveal_last: 4 }}',
      expiration_month: '{{ data.expiration_month }}',
      expiration_year: '{{ data.expiration_year }}',
    },
    fingerprint_expression: '{{ data.number }}',
  })),
  {
    type: 'bank',
    data: bank,
    containers: ['/bank/high/'],
    mask: {
      routing_number: '{{ data.routing_number }}',
      account_number: '{{ data.account_number | reveal_last: 4 }}',
    },
    fingerprint_expression: '{{ data.account_number }}|{{ data.routing_number }}',
  },
  ...[
    { type: 'card_number', data: visa.number, containers: ['/pci/high/'] },
    { type: 'us_bank_account_number', data: bank.account_number, containers: ['/bank/high/'] },
    { type: 'us_bank_routing_number', data: bank.routing_number, containers: ['/bank/low/'] },
  ].map((row) => ({
    ...row,
    mask: lastFour,
    fingerprint_expression: '{{ data }}',
  })),
  ...[
    { type: 'social_security_number', data: '078-05-1120' },
    { type: 'employer_id_number', data: '12-3456789' },
  ].map((row) => ({
    ...row,
    containers: ['/pii/high/'],
    mask: lastFour,
    fingerprint_expression: "{{ data | remove: '-' }}",
    search_indexes: personalIndexes,
  })),
];

onBothEngines('POST /tokens', (engine) => {
  const tenants = tenantsOf(engine);

  test('201: the token comes back as the transform of the rule shows it, with its location', async () => {
    const tenant = await tenants();
    const created = await tenant.token({ type: 'card', data: visa });
    const { body } = created;
    assert.deepEqual(body.data, visa);
    assert.deepEqual(body.card, {
      bin: '42424242',
      last4: '4242',
      expiration_month: 12,
      expiration_year: 2030,
      brand: 'visa',
    });
    assert.deepEqual(body._extras, { deduplicated: false });
    assert.equal(body.tenant_id, tenant.id);
    assert.match(body.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    assert.equal('modified_at' in body, false);
    assert.equal(created.headers.get('location'), `/tokens/${body.id}`);
    const [application] = (await tenant.rows('applications')).filter(({ name }) => name === 'test');
    assert.equal(body.created_by, application?.application_id);
    assert.deepEqual(await tenant.logged(), ['create']);
  });

  test('201: every type brings its container, mask, fingerprint and search indexes', async () => {
    const tenant = await tenants();
    for (const { type, data, ...defaults } of types) {
      const { body } = await tenant.token({ type, data });
      assert.deepEqual(body.data, data, type);
      assert.match(body.fingerprint, /^[1-9A-HJ-NP-Za-km-z]{43,44}$/, type);
      for (const [name, value] of Object.entries(defaults)) {
        assert.deepEqual(body[name], value, type);
      }
    }
  });

  test('201: attributes given replace those of the type, and are answered as given', async () => {
    const tenant = await tenants();
    const given = {
      mask: { shown: '{{ data.number | card_mask: "true", "true" }}' },
      metadata: { 'order no': 'A-1', empty: '', ü: '☃' },
      search_indexes: ['{{ data.number }}', '{{ data.expiration_year }}'],
      fingerprint_expression: 'customer-{{ metadata.empty }}{{ data.number }}',
    };
    const containers = ['/PCI/High/Customers_1/a-b/'];
    const { body } = await tenant.token({ type: 'card', data: visa, containers, ...given });
    for (const [name, value] of Object.entries(given)) assert.deepEqual(body[name], value);
    assert.deepEqual(body.containers, ['/pci/high/customers_1/a-b/']);
    const read = await tenant.send('GET', `/tokens/${body.id}`);
    const { _extras, ...stored } = body;
    assert.deepEqual(read.body, stored);
  });

  test('201: the terms of the search indexes are stored with the token, as keyed digests', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const body = {
      type: 'card',
      data: visa,
      search_indexes: ['{{ data.number }}', '{{ data.expiration_year }}', '{{data.number}}'],
    };
    const { id } = (await tenant.token(body)).body;
    await tenant.token({ ...body, search_indexes: ['{{ data.number }}'] });
    await other.token({ ...body, search_indexes: ['{{ data.number }}'] });
    const rows = await tenant.rows('search_terms');
    const terms = rows.filter(({ token_id }) => token_id === id).map(({ term }) => term);
    assert.equal(terms.length, 2);
    const shared = rows.filter(({ token_id, term }) => token_id !== id && terms.includes(term));
    assert.equal(shared.length, 1, 'equal values have equal terms');
    const foreign = (await other.rows('search_terms')).map(({ term }) => term);
    assert.equal(foreign.length, 1);
    assert.equal(terms.includes(foreign[0] ?? ''), false, 'not across tenants');
    for (const term of terms) assert.match(term, /^[\w-]{22}$/);
  });

  test('201: null means absent, and the legacy privacy has no effect', async () => {
    const tenant = await tenants();
    const nothing = {
      id: null,
      mask: null,
      containers: null,
      metadata: null,
      search_indexes: null,
      fingerprint_expression: null,
      deduplicate_token: null,
      expires_at: null,
    };
    const privacy = { classification: 'pci', impact_level: 'low', restriction_policy: 'mask' };
    const plain = await tenant.token({ type: 'card', data: visa });
    const { body } = await tenant.token({ type: 'card', data: visa, ...nothing, privacy });
    const own = ['id', 'created_at'];
    for (const name of Object.keys(plain.body).filter((key) => !own.includes(key))) {
      assert.deepEqual(body[name], plain.body[name], name);
    }
    assert.equal('privacy' in body, false);
    assert.equal('metadata' in body || 'expires_at' in body, false);
  });

  test('201: an empty list of containers is the container of the type, the root is allowed', async () => {
    const tenant = await tenants();
    const none = await tenant.token({ type: 'card', data: visa, containers: [] });
    assert.deepEqual(none.body.containers, ['/pci/high/']);
    const root = await tenant.token({ type: 'card', data: visa, containers: ['/'] });
    assert.deepEqual(root.body.containers, ['/']);
  });

  test('201: card and bank data sent loosely are kept in one form', async () => {
    const tenant = await tenants();
    const loose = {
      cvc: 123,
      expiration_year: '2030',
      expiration_month: '02',
      number: visa.number,
    };
    const { body } = await tenant.token({ type: 'card', data: loose });
    assert.deepEqual(body.data, { ...visa, expiration_month: 2 });
    const { body: bare } = await tenant.token({
      type: 'card',
      data: { number: visa.number, cvc: null },
    });
    assert.deepEqual(bare.data, { number: visa.number });
  });

  test('201: every attribute at its limit is kept', async () => {
    const tenant = await tenants();
    const keys = Array.from({ length: 50 }, (_, index) => `${index}`.padStart(100, 'k'));
    const given = {
      mask: 'm'.repeat(5_998),
      metadata: Object.fromEntries(keys.map((key) => [key, 'v'.repeat(500)])),
      search_indexes: Array.from({ length: 10 }, (_, index) => `${index} {{ data }}`),
      fingerprint_expression: '{{ data }}'.padEnd(400, '.'),
    };
    for (const container of [`/${'a'.repeat(398)}/`, `${'/a'.repeat(32)}/`]) {
      const { body } = await tenant.token({
        type: 'token',
        data: 1,
        containers: [container],
        ...given,
      });
      assert.deepEqual(body.containers, [container]);
      for (const [name, value] of Object.entries(given)) assert.deepEqual(body[name], value, name);
    }
  });

  test('201: own ids of 3 to 400 characters, also such as need percent-encoding', async () => {
    const tenant = await tenants();
    const ids = [
      'abc',
      'a'.repeat(400),
      'Jane Doe @ 1:2.3-x_y~!$*(),;"\'`',
      '漢'.repeat(400),
      '...',
    ];
    for (const id of ids) {
      const created = await tenant.token({ id, type: 'token', data: id.length });
      assert.equal(created.body.id, id);
      const path = `/tokens/${encodeURIComponent(id)}`;
      assert.equal(created.headers.get('location'), path);
      assert.equal((await tenant.send('GET', path)).body.data, id.length);
      assert.equal((await tenant.send('PATCH', path, { body: { data: 'new' } })).status, 200);
      assert.equal((await tenant.send('DELETE', path)).status, 204);
    }
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('201: an id from an expression over the data, drawn again while it is taken', async () => {
    const tenant = await tenants();
    const named = await tenant.token({
      id: '{{ data.number | last4 }}@{{ data.expiration_year }}',
      type: 'card',
      data: visa,
    });
    assert.equal(named.body.id, '4242@2030');
    // One of ten ids, for eleven tokens: the space is exhausted and the last ones get a UUID.
    const drawn = new Set<string>();
    for (let index = 0; index < 11; index += 1) {
      const id = 'pin{{ data | slice: 0, 1 | alias_preserve_format: 0, 0 }}';
      drawn.add((await tenant.token({ id, type: 'token', data: '1234' })).body.id);
    }
    assert.equal(drawn.size, 11);
    assert.ok([...drawn].some((id) => /^[0-9a-f-]{36}$/.test(id)));
    assert.ok([...drawn].some((id) => /^pin\d$/.test(id)));
  });

  test('201: an expired token that still holds the id or the fingerprint makes way', async () => {
    const tenant = await tenants();
    const { clock } = tenant.vault;
    const inAMinute = () => new Date(clock.now() + 60_000).toISOString();
    const body = {
      id: 'own id',
      type: 'card',
      data: visa,
      deduplicate_token: true,
      search_indexes: ['{{ data.number }}'],
      expires_at: inAMinute(),
    };
    await tenant.token(body);
    clock.advance(61_000);
    assert.equal((await tenant.send('GET', '/tokens/own%20id')).status, 404);
    const second = await tenant.token({ ...body, expires_at: inAMinute() });
    assert.deepEqual(second.body._extras, { deduplicated: false });
    clock.advance(61_000);
    const third = await tenant.token({ ...body, id: null, expires_at: null });
    assert.deepEqual(third.body._extras, { deduplicated: false });
    assert.deepEqual(
      (await tenant.rows('tokens')).map(({ token_id }) => token_id),
      [third.body.id],
    );
    assert.equal((await tenant.rows('search_terms')).length, 1);
    const entries = (await tenant.logged()).filter((entry) => entry !== 'read failed');
    assert.deepEqual(entries, ['create', 'create', 'create', 'expire', 'expire']);
  });

  test('201: equal values have equal fingerprints, another type or tenant has others', async () => {
    const tenant = await tenants();
    const other = await newTenant(tenant.vault);
    const fingerprint = async (body: object, of = tenant) =>
      (await of.token({ ...body })).body.fingerprint;
    const card = await fingerprint({ type: 'card', data: visa });
    assert.equal(await fingerprint({ type: 'card', data: { number: visa.number } }), card);
    assert.notEqual(await fingerprint({ type: 'network_token', data: visa }), card);
    assert.notEqual(await fingerprint({ type: 'card_number', data: visa.number }), card);
    assert.notEqual(await fingerprint({ type: 'card', data: visa }, other), card);
    const number = { type: 'token', data: 1, fingerprint_expression: '{{ data }}' };
    const text = { ...number, data: '1' };
    assert.equal(await fingerprint(number), await fingerprint(text));
  });

  test('201: a tenant that turned fingerprints off gets them only where it asks', async () => {
    const tenant = await tenants();
    await tenant.set({ fingerprint_tokens: 'false' });
    const plain = await tenant.token({ type: 'card', data: visa });
    assert.equal('fingerprint' in plain.body || 'fingerprint_expression' in plain.body, false);
    const asked = await tenant.token({
      type: 'card',
      data: visa,
      fingerprint_expression: '{{ data.number }}',
    });
    assert.match(asked.body.fingerprint, /^\w{43,44}$/);
    const deduplicating = await tenant.token({ type: 'card', data: visa, deduplicate_token: true });
    assert.deepEqual(deduplicating.body.id, asked.body.id);
  });

  test('403: a rule for other containers; the attempt is logged and nothing is stored', async () => {
    const tenant = await tenants();
    const key = await tenant.holder({ container: '/pci/' });
    const body = { type: 'token', data: 'x' };
    const before = await tenant.counts();
    const denied = await tenant.send('POST', '/tokens', { key, body });
    assert.equal(denied.status, 403);
    assert.equal(denied.body.type, 'urn:strongroom:problem:forbidden');
    assert.deepEqual(await tenant.counts(), { ...before, logs: (before['logs'] ?? 0) + 1 });
    assert.deepEqual(await tenant.logged(), ['create denied']);
    const inside = await tenant.send('POST', '/tokens', {
      key,
      body: { ...body, containers: ['/pci/low/'] },
    });
    assert.equal(inside.status, 201);
  });

  test('400: no id has a character that shows the rest of a line in another order, or not at all', async () => {
    const tenant = await tenants();
    for (const mark of ['\u202e', '\u2066', '\u200f', '\u200b', '\ufeff', '\u{e0041}']) {
      for (const id of [`a${mark}bc`, `{{ data | append: '${mark}' }}`]) {
        const body = { id, type: 'token', data: 'abc' };
        const refused = await tenant.send('POST', '/tokens', { body });
        assert.equal(refused.status, 400, JSON.stringify(id));
        assert.deepEqual(Object.keys(refused.body.errors), ['id']);
        assert.ok(!refused.text.includes(mark));
      }
    }
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('409: an id that is taken stores nothing but its entry in the log, whoever took it', async () => {
    const tenant = await tenants();
    const body = { id: 'taken', type: 'token', data: 1 };
    await tenant.token(body);
    const before = await tenant.counts();
    const again = await tenant.send('POST', '/tokens', { body: { ...body, data: 2 } });
    assert.equal(again.status, 409);
    assert.equal(again.body.status, 409);
    const constant = { ...body, id: "{{ 'taken' }}" };
    assert.equal((await tenant.send('POST', '/tokens', { body: constant })).status, 409);
    const { logs: _before, ...kept } = before;
    const { logs: _after, ...after } = await tenant.counts();
    assert.deepEqual(after, kept);
    const failed = (await tenant.rows('logs')).filter(({ result }) => result === 'failed');
    assert.deepEqual(new Set(failed.map(({ entity_id }) => entity_id)), new Set(['taken']));
    assert.equal((await tenant.send('GET', '/tokens/taken')).body.data, 1);
    const other = await newTenant(tenant.vault);
    assert.equal((await other.send('POST', '/tokens', { body })).status, 201);
  });

  test('409: of many requests for one id exactly one succeeds', async () => {
    const tenant = await tenants();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, data) =>
        tenant.send('POST', '/tokens', { body: { id: 'one', type: 'token', data } }),
      ),
    );
    const created = answers.filter(({ status }) => status === 201);
    assert.equal(created.length, 1);
    assert.equal(answers.filter(({ status }) => status === 409).length, 19);
    assert.equal((await tenant.send('GET', '/tokens/one')).body.data, created[0]?.body.data);
    const logged = new Set(await tenant.logged());
    assert.deepEqual(logged, new Set(['create', 'create failed', 'read']));
  });
});
