/** An egress budget: no key reveals more values than its application may, whatever runs at once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { engineOf, onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { createProxy } from '../support/proxies.ts';
import { createReactor } from '../support/reactors.ts';
import { newTenant, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createTestClock, revealEverything, startVault } from '../support/vault.ts';

async function limited(tenant: TestTenant, egress_budget: object): Promise<string> {
  for (const id of ['one', 'two', 'three'])
    await tenant.token({ id, type: 'token', data: `value ${id}` });
  return tenant.application({ rules: [revealEverything], egress_budget });
}

async function poll(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await nextLook();
}

onBothEngines('egress_budget', (engine) => {
  const tenants = tenantsOf(engine);

  test('429: of 40 requests at once exactly as many reveal a value as the budget has', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 7 });
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => tenant.send('GET', '/tokens/one', { key })),
    );
    const statuses = responses.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [...Array(7).fill(200), ...Array(33).fill(429)]);
    for (const { status, text, headers } of responses) {
      assert.equal(text.includes('value one'), status === 200);
      if (status === 429) assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/);
    }
    const revealed = (await tenant.rows('logs')).filter(
      ({ disclosure, entity_id, result }) =>
        disclosure === 'rg' && entity_id === 'one' && result === 'success',
    );
    assert.equal(revealed.length, 7);
  });

  test('429: a request that reveals more than is left reveals nothing, and takes nothing', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 2, per_day: 100 });
    const body = { a: '{{ one }}', b: '{{ two }}', c: '{{ three }}' };
    const refused = await tenant.send('POST', '/detokenize', { key, body });
    assert.equal(refused.status, 429);
    assert.ok(!refused.text.includes('value one'));
    const two = await tenant.send('POST', '/detokenize', { key, body: { a: body.a, b: body.b } });
    assert.equal(two.status, 200, two.text);
    assert.equal((await tenant.send('GET', '/tokens/three', { key })).status, 429);
    assert.equal((await tenant.send('GET', '/tokens/three')).status, 200, 'other keys go on');
  });

  test('200: the budget is shown, replaced and removed; 400 names what is wrong with it', async () => {
    const tenant = await tenants();
    const admin = { key: tenant.managementKey };
    const base = { name: 'limited', type: 'private', permissions: ['token:read'] };
    const send = (egress_budget: unknown) =>
      tenant.send('POST', '/applications', { ...admin, body: { ...base, egress_budget } });
    const made = await send({ per_hour: 10, per_day: 20 });
    assert.deepEqual(made.body.egress_budget, { per_hour: 10, per_day: 20 });
    const { type: _, ...update } = base;
    const path = `/applications/${made.body.id}`;
    const put = async (changed: object) =>
      (await tenant.send('PUT', path, { ...admin, body: { ...update, ...changed } })).body;
    assert.deepEqual((await put({})).egress_budget, { per_hour: 10, per_day: 20 });
    assert.deepEqual((await put({ egress_budget: { per_day: 5 } })).egress_budget, { per_day: 5 });
    assert.equal((await put({ egress_budget: null })).egress_budget, undefined);
    for (const wrong of [{ per_hour: 0 }, { per_week: 1 }, { per_day: 'x' }]) {
      const { status, text } = await send(wrong);
      assert.equal(status, 400, text);
      assert.match(text, /egress_budget/);
    }
  });

  test('429: a session spends the budget of the key that authorized it', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 2 });
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const open = async () => {
      const { body } = await tenant.send('POST', '/sessions', { key: publicKey });
      const granted = { nonce: body.nonce, rules: [revealEverything] };
      const authorized = await tenant.send('POST', '/sessions/authorize', { key, body: granted });
      assert.equal(authorized.status, 200, authorized.text);
      return body.session_key as string;
    };
    const statuses: number[] = [];
    for (const session of [await open(), await open(), await open()]) {
      statuses.push((await tenant.send('GET', '/tokens/one', { key: session })).status);
    }
    assert.deepEqual(statuses, [200, 200, 429]);
    assert.equal((await tenant.send('GET', '/tokens/two', { key })).status, 429);
  });

  test('429: a session spends the budget of the public key that created it', async () => {
    const tenant = await tenants();
    await limited(tenant, { per_hour: 100 });
    const publicKey = await tenant.application({
      ...{ type: 'public', permissions: ['token:create'] },
      egress_budget: { per_hour: 1 },
    });
    const { body } = await tenant.send('POST', '/sessions', { key: publicKey });
    const granted = { nonce: body.nonce, rules: [revealEverything] };
    await tenant.send('POST', '/sessions/authorize', { body: granted });
    const read = () => tenant.send('GET', '/tokens/one', { key: body.session_key });
    assert.equal((await read()).status, 200);
    assert.equal((await read()).status, 429);
  });

  test('429: code that has other rights spends the budget of the key that calls it', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 1 });
    const lent = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'lends', type: 'private', rules: [revealEverything], create_key: false },
    });
    const code = `module.exports = async ({ bt, args }) => {
      const token = await bt.tokens.retrieve(args.id);
      return { raw: { data: token.data } };
    }`;
    const { id } = await createReactor(tenant, { code, application: { id: lent.body.id } });
    const caller = await tenant.application({
      ...{ permissions: ['reactor:invoke'], egress_budget: { per_hour: 1 } },
    });
    const call = () =>
      tenant.send('POST', `/reactors/${id}/react`, { key: caller, body: { args: { id: 'one' } } });
    const first = await call();
    assert.equal(first.status, 200, first.text);
    assert.match(first.text, /value one/);
    const second = await call();
    assert.ok(second.status >= 400, second.text);
    assert.doesNotMatch(second.text, /value one/);
    assert.equal(
      (await tenant.send('GET', '/tokens/one', { key })).status,
      200,
      'other keys go on',
    );
  });

  test('429: an export ends where the budget does, before it shows more', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 2 });
    const { status, text } = await tenant.send('GET', '/tokens/export', { key });
    assert.equal(status, 429, text);
    assert.doesNotMatch(text, /value one|value two/);
  });

  test('429: the same request again, under an idempotency key, takes from the budget again', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 2 });
    const again = () =>
      tenant.send('POST', '/detokenize', {
        ...{ key, body: { a: '{{ one }}' } },
        headers: { 'svc-idempotency-key': 'a key that is long enough' },
      });
    assert.deepEqual([(await again()).status, (await again()).status], [200, 200]);
    const { status, text } = await again();
    assert.equal(status, 429);
    assert.doesNotMatch(text, /value one/);
  });

  test('429: a patch that masks a value as it moves it counts as revealing it', async () => {
    const tenant = await tenants();
    const permissions = ['token:read', 'token:update'];
    const rules = [
      { priority: 1, container: '/pci/', transform: 'reveal', permissions },
      { priority: 2, container: '/archive/', transform: 'mask', permissions },
    ];
    const key = await tenant.application({ rules, egress_budget: { per_hour: 1 } });
    const ids = ['masked-1', 'masked-2', 'moved', 'brought'];
    for (const id of ids) {
      const data = `value of ${id}`;
      await tenant.token({ id, type: 'token', data, mask: '***', containers: ['/pci/'] });
    }
    const containers = ['/archive/'];
    const patch = (id: string, changes: object) =>
      tenant.send('PATCH', `/tokens/${id}`, { key, body: { containers, ...changes } });
    assert.equal((await patch('moved', {})).body.data, '***');
    const brought = await patch('brought', { data: 'new', mask: '{{ data | slice: 0, 1 }}' });
    assert.equal(brought.body.data, 'n');
    const first = await patch('masked-1', { mask: '{{ data }}' });
    assert.equal(first.body.data, 'value of masked-1');
    const second = await patch('masked-2', { mask: '{{ data }}' });
    assert.equal(second.status, 429, second.text);
    assert.ok(!second.text.includes('value of'));
    const logs = await tenant.rows('logs');
    const shown = ids.map((id) =>
      logs
        .filter((row) => row.entity_id === id && row.operation === 'update')
        .map(({ disclosure, result }) => `${result} ${disclosure}`),
    );
    assert.deepEqual(shown.slice(2), [['success mu'], ['success mu']]);
    assert.deepEqual(shown[0], ['success ru']);
  });

  test('429: no expression finds out a value by failing, once the budget is spent', async () => {
    const tenant = await tenants();
    const permissions = ['token:read', 'token:update', 'token:create', 'token:use'];
    const all = [...permissions, 'proxy:invoke', 'reactor:invoke', 'token-intent:create'];
    const rules = [{ ...revealEverything, permissions }];
    const own = all.slice(4);
    const budget = { per_hour: 1 };
    const key = await tenant.application({ rules, permissions: own, egress_budget: budget });
    for (const id of ['spent', 'sought']) await tenant.token({ id, type: 'token', data: '4711' });
    const proxy = await createProxy(tenant);
    const reactor = await createReactor(tenant, { code: 'module.exports = async () => ({});' });
    // What fails where the first digit is a 4, and what does not fail.
    const tests = ['4', '5'].map((digit) => `slice: 0, 1 | replace: "${digit}", "%" | url_decode`);
    const intent = async () =>
      (await tenant.send('POST', '/token-intents', { key, body: { type: 'token', data: '4711' } }))
        .body;
    const ways: Readonly<
      Record<string, (test: string) => Promise<readonly [string, string, object]>>
    > = {
      fingerprint: async (test) => [
        'PATCH',
        '/tokens/sought',
        { fingerprint_expression: `{{ data | ${test} }}` },
      ],
      'search index': async (test) => [
        'PATCH',
        '/tokens/sought',
        { search_indexes: [`{{ data | ${test} }}`] },
      ],
      conversion: async (test) => [
        'POST',
        '/tokens',
        { token_intent_id: (await intent()).id, search_indexes: [`{{ data | ${test} }}`] },
      ],
      detokenize: async (test) => ['POST', '/detokenize', { a: `{{ sought | ${test} }}` }],
      reactor: async (test) => [
        'POST',
        `/reactors/${reactor.id}/react`,
        { args: { a: `{{ sought | ${test} }}` } },
      ],
      proxy: async (test) => ['POST', '/proxy', { a: `{{ sought | ${test} }}` }],
    };
    const spend = () => tenant.send('GET', '/tokens/spent', { key });
    assert.equal((await spend()).status, 200);
    for (const [name, way] of Object.entries(ways)) {
      for (const test of tests) {
        const [method, path, body] = await way(test);
        const headers = {
          ...(method === 'PATCH' && { 'content-type': 'application/merge-patch+json' }),
          ...(path === '/proxy' && { 'svc-proxy-key': proxy.key }),
        };
        for (const condition of [{}, { 'if-match': '"AAAAAAAAAAAAAAAAAAAA"' }]) {
          const isPlain = !('if-match' in condition);
          if (!isPlain && method === 'POST') continue;
          const sent = { key, body, headers: { ...headers, ...condition } };
          const { status, text } = await tenant.send(method, path, sent);
          assert.equal(status, 429, `${name} ${test} ${isPlain}: ${text}`);
        }
      }
    }
    // It is the failure that takes from the budget, and the log has each of them.
    const fresh = await tenant.application({ rules, egress_budget: budget });
    const failing = tests.at(0) ?? '';
    const [method, path, body] = (await ways['fingerprint']?.(failing)) ?? ['', '', {}];
    const headers = { 'content-type': 'application/merge-patch+json' };
    const failure = await tenant.send(method, path, { key: fresh, body, headers });
    assert.equal(failure.status, 400, failure.text);
    assert.equal((await tenant.send('GET', '/tokens/spent', { key: fresh })).status, 429);
    const failed = (await tenant.rows('logs')).filter(
      ({ entity_id, operation, result }) =>
        entity_id === 'sought' && operation === 'update' && result === 'failed',
    );
    const told = failed.map(({ disclosure }) => disclosure);
    assert.deepEqual([...new Set(told)].sort(), [null, 'ru'].sort());
    assert.equal(told.filter((one) => one !== null).length, 1);
  });

  test('an alert is in the log once four fifths are used', async () => {
    const tenant = await tenants();
    const key = await limited(tenant, { per_hour: 5 });
    const alerts = async () =>
      (await tenant.rows('logs')).filter(({ operation }) => operation === 'egress_budget');
    for (let count = 0; count < 3; count++) await tenant.send('GET', '/tokens/one', { key });
    assert.equal((await alerts()).length, 0);
    await tenant.send('GET', '/tokens/one', { key });
    await poll(async () => (await alerts()).length === 1);
  });
});

test('429: two servers on one database together reveal what the budget has', async (t) => {
  const engine = engineOf('postgres');
  const place = await engine.place(t);
  const clock = createTestClock();
  const first = await startVault(t, engine, { place, clock });
  const second = await startVault(t, engine, { place, clock });
  const tenant = await newTenant(first);
  const key = await limited(tenant, { per_day: 9 });
  const responses = await Promise.all(
    Array.from({ length: 30 }, (_, at) =>
      (at % 2 === 0 ? first : second).send('GET', '/tokens/one', { key }),
    ),
  );
  const statuses = responses.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [...Array(9).fill(200), ...Array(21).fill(429)]);
});
