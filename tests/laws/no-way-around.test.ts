/** No way around what a key may see: through a session, through an expression, or past the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { mastercard, visa } from '../support/values.ts';

const rule = (priority: number, container: string, permissions: readonly string[]) => ({
  priority,
  container,
  permissions,
  transform: 'reveal',
});

/** Unsuccessful attempts by the id in the log, with their messages. */
async function attempts(tenant: TestTenant) {
  const entries = (await tenant.rows('logs')).filter(({ result }) => result !== 'success');
  return entries.map(({ entity_id, message }) => [entity_id, message]).toSorted();
}

onBothEngines('A session', (engine) => {
  const tenants = tenantsOf(engine);

  /** The key of a session that the application of `key` authorized. */
  async function sessionOf(tenant: TestTenant, key: string, rules: readonly object[]) {
    const page = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { body } = await tenant.send('POST', '/sessions', { key: page });
    const authorization = { key, body: { nonce: body.nonce, rules } };
    const authorized = await tenant.send('POST', '/sessions/authorize', authorization);
    assert.equal(authorized.status, 200, authorized.text);
    return body.session_key as string;
  }

  test('403: does not move a token to where the application that authorized it sees more', async () => {
    const tenant = await tenants();
    const { body: token } = await tenant.token({
      type: 'card',
      data: visa,
      containers: ['/from/'],
    });
    const updates = rule(1, '/', ['token:update']);
    const rules = [updates, rule(2, '/to/', ['token:read'])];
    const key = await tenant.application({ rules });
    const session = await sessionOf(tenant, key, [updates]);
    const body = { containers: ['/to/'] };
    for (const mover of [key, session]) {
      const moved = await tenant.send('PATCH', `/tokens/${token.id}`, { key: mover, body });
      assert.equal(moved.status, 403, moved.text);
      assert.deepEqual(Object.keys(moved.body.errors), ['containers']);
    }
    assert.equal((await tenant.send('GET', `/tokens/${token.id}`, { key })).status, 403);
    assert.equal((await tenant.rows('tokens'))[0]?.container, '/from/');
  });

  test('200: moves a token to where that application sees as much as before', async () => {
    const tenant = await tenants();
    const { body: token } = await tenant.token({
      type: 'card',
      data: visa,
      containers: ['/from/'],
    });
    const updates = rule(1, '/', ['token:update']);
    const session = await sessionOf(tenant, tenant.key, [updates]);
    const patch = { key: session, body: { containers: ['/to/'] } };
    const moved = await tenant.send('PATCH', `/tokens/${token.id}`, patch);
    assert.equal(moved.status, 200, moved.text);
    assert.deepEqual(moved.body.containers, ['/to/']);
  });
});

onBothEngines('An update that brings the whole value', (engine) => {
  const tenants = tenantsOf(engine);
  const request = { type: 'token', data: 'old', metadata: { owner: 'Jane' }, containers: ['/a/'] };

  const named = '{{ metadata.owner | slice: 0, 1 }}';
  const computed = '{{ [data].owner | slice: 0, 1 }}';
  const patches = [
    ['fingerprint_expression', { fingerprint_expression: named, data: 'new' }],
    ['fingerprint_expression', { fingerprint_expression: computed, data: 'metadata' }],
    ['search_indexes', { search_indexes: ['{{ data }}', named], data: 'new' }],
    ['search_indexes', { search_indexes: [computed], data: 'metadata' }],
  ] as const;

  for (const [attribute, patch] of patches) {
    const how = patch.data === 'new' ? 'naming' : 'computing the name of';

    test(`403: of ${attribute} ${how} metadata that the caller may not read`, async () => {
      const tenant = await tenants();
      const { body: token } = await tenant.token(request);
      const rules = [rule(1, '/a/', ['token:create', 'token:update'])];
      const key = await tenant.application({ type: 'public', rules });
      const before = await tenant.rows('tokens');
      const sent = { key, body: patch };
      const answer = await tenant.send('PATCH', `/tokens/${token.id}`, sent);
      assert.equal(answer.status, 403, answer.text);
      assert.deepEqual(Object.keys(answer.body.errors), [attribute]);
      assert.deepEqual(await tenant.rows('tokens'), before);
    });

    test(`200: of ${attribute} ${how} metadata that the caller reads`, async () => {
      const tenant = await tenants();
      const { body: token } = await tenant.token(request);
      const redacted = { ...rule(1, '/a/', ['token:read', 'token:update']), transform: 'redact' };
      const key = await tenant.application({ rules: [redacted] });
      const sent = { key, body: patch };
      const answer = await tenant.send('PATCH', `/tokens/${token.id}`, sent);
      assert.equal(answer.status, 200, answer.text);
    });
  }
});

onBothEngines('A token that waits for an equal value', (engine) => {
  const tenants = tenantsOf(engine);
  const { cvc: _code, ...number } = visa;
  const traps = [
    { type: 'card', data: number, mask: '{{ data.cvc }}' },
    { type: 'card', data: number, search_indexes: ['{{ data.expiration_year }}'] },
  ];
  const updating = { deduplicate_tokens: 'true', token_deduplication_behavior: 'update_existing' };

  test('201: takes over nothing of a request with other definitions', async () => {
    for (const trap of traps) {
      const tenant = await tenants();
      await tenant.set(updating);
      const { body: waiting } = await tenant.token(trap);
      const before = await tenant.rows('tokens');
      const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
      const body = { type: 'card', data: visa };
      const answer = await tenant.send('POST', '/tokens', { key, body });
      assert.equal(answer.status, 201, answer.text);
      assert.deepEqual([answer.body.id, answer.body._extras], [waiting.id, read]);
      assert.deepEqual(await tenant.rows('tokens'), before);
    }
  });

  test('201: is not found when a constant gave it its fingerprint', async () => {
    const tenant = await tenants();
    await tenant.set(updating);
    const constant = { fingerprint_expression: visa.number, mask: '{{ data }}' };
    await tenant.token({ type: 'card', data: mastercard, ...constant });
    const [before] = await tenant.rows('tokens');
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const answer = await tenant.send('POST', '/tokens', {
      key,
      body: { type: 'card', data: visa },
    });
    assert.deepEqual(answer.body._extras, { deduplicated: false }, answer.text);
    const rows = await tenant.rows('tokens');
    assert.deepEqual([rows.length, rows[0]?.fingerprint], [2, rows[1]?.fingerprint]);
    assert.ok(rows.some((row) => row.token_id === before?.token_id && row.version === 1));
  });

  test('201: takes over the data of a request with the same definitions', async () => {
    const tenant = await tenants();
    await tenant.set(updating);
    const same = { type: 'card', mask: { last: '{{ data.number | last4 }}' } };
    await tenant.token({ ...same, data: number });
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const sent = { key, body: { ...same, data: visa } };
    const answer = await tenant.send('POST', '/tokens', sent);
    assert.equal(answer.body._extras.deduplication_behavior, 'update_existing', answer.text);
  });

  const read = { deduplicated: true, deduplication_behavior: 'read_existing' };
});

onBothEngines('Detokenizing ids that do not exist beside some that do', (engine) => {
  const tenants = tenantsOf(engine);

  test('400: the log names each token that the caller may not read, and counts the other ids', async () => {
    const tenant = await tenants();
    for (const id of ['theirs-1', 'theirs-2']) {
      await tenant.token({ id, type: 'token', data: 1, containers: ['/b/'] });
    }
    await tenant.token({ id: 'own', type: 'token', data: 1, containers: ['/a/'] });
    const key = await tenant.application({ rules: [rule(1, '/a/', ['token:read'])] });
    const body = ['theirs-1', 'theirs-2', 'own', 'none-1', 'none-2'].map((id) => `{{ ${id} }}`);
    const answer = await tenant.send('POST', '/detokenize', { key, body });
    assert.equal(answer.status, 400, answer.text);
    assert.deepEqual(await attempts(tenant), [
      ['*', 'Token read failed (2 times)'],
      ['theirs-1', 'Token read denied'],
      ['theirs-2', 'Token read denied'],
    ]);
  });
});
