/** POST /reactors/{id}/react. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { createReactor, echo, invoker, react } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const missing = '00000000-0000-4000-8000-000000000000';
const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

/** What the log says of tokens and reactors, with its messages. */
async function entriesOf(tenant: TestTenant, entity: string) {
  return (await tenant.rows('logs'))
    .filter(({ entity_type }) => entity_type === entity)
    .map(({ operation, result, message }) => ({ operation, result, message }));
}

onBothEngines('calling a reactor', (engine) => {
  const newTenant = tenantsOf(engine);

  test('200: the code gets values in place of expressions, each logged before it runs', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({ type: 'card', data: card });
    const { id } = await createReactor(tenant, { configuration: { NAME: 'n' } });
    const args = {
      number: `{{ ${token.id} | json: '$.number' | last4 }}`,
      card: `{{ ${token.id} }}`,
      name: '{{ config: NAME }}',
      plain: [1, null, 'x'],
    };
    const key = await invoker(tenant);
    const called = await tenant.send('POST', `/reactors/${id}/react`, { key, body: { args } });
    assert.equal(called.status, 200, called.text);
    assert.deepEqual(called.body, {
      raw: { number: '4242', card, name: 'n', plain: [1, null, 'x'] },
    });
    const used = (await entriesOf(tenant, 'token')).find(({ operation }) => operation === 'use');
    assert.equal(used?.message, `Token used in a reactor call: reactor ${id}`);
    const [, invoked, completed] = await entriesOf(tenant, 'reactor');
    assert.equal(invoked?.message, 'Reactor invoked: sync');
    assert.match(completed?.message ?? '', /^Reactor completed: sync, after \d+ ms$/);
  });

  test('200: without a body, and with the whole body for the newer image', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const { id } = await createReactor(tenant);
    const empty = await tenant.send('POST', `/reactors/${id}/react`, { key });
    assert.deepEqual(empty.body, { raw: {} }, empty.text);
    // Null is a body, and not an object.
    const refused = await tenant.send('POST', `/reactors/${id}/react`, { key, body: null });
    assert.equal(refused.status, 400);
    const code = `module.exports = async (event) => ({ res: { statusCode: 201,
      headers: { 'X-Own': 'yes', 'Set-Cookie': 'a=b', 'SVC-TRACE-ID': 'forged', 'X-Accel-Redirect': '/tokens' },
      body: { given: event.req, secret: event.configuration.KEY.length } } })`;
    const newer = await createReactor(tenant, {
      code,
      runtime: { image: 'node22' },
      configuration: { KEY: 'sk' },
    });
    const path = `/reactors/${newer.id}/react`;
    const called = await tenant.send('POST', path, { key, body: { a: [1], args: 2 } });
    assert.equal(called.status, 201, called.text);
    assert.deepEqual(called.body, { given: { a: [1], args: 2 }, secret: 2 });
    assert.equal(called.headers.get('x-own'), 'yes');
    assert.equal(called.headers.get('set-cookie'), null);
    assert.equal(called.headers.get('x-accel-redirect'), null);
    assert.notEqual(called.headers.get('svc-trace-id'), 'forged');
    assert.equal(called.headers.get('content-security-policy'), 'sandbox');
  });

  test('200: what is to be tokenized is stored, and the response shows ids and no data', async () => {
    const tenant = await newTenant();
    const code = `module.exports = (req) => ({ raw: 1, tokenize: {
      card: { type: 'card', data: { ...req.args.card } }, note: 'remember' } })`;
    const called = await react(tenant, { code }, { args: { card } });
    assert.equal(called.status, 200, called.text);
    const { tokens, raw } = called.body;
    assert.equal(raw, 1);
    assert.equal(tokens.card.type, 'card');
    assert.equal(tokens.card.data, undefined);
    const read = await tenant.send('GET', `/tokens/${tokens.card.id}`);
    assert.deepEqual(read.body.data, card);
    const note = await tenant.send('GET', `/tokens/${tokens.note}`);
    assert.equal(note.body.data, 'remember');
    const created = await entriesOf(tenant, 'token');
    assert.match(created[0]?.message ?? '', /^Token created: by the code of reactor /);
  });

  test('one call for each idempotency key, whose response is given again, also one that code made', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant, 'token:create');
    for (const given of [
      { code: "module.exports = () => ({ raw: Math.random(), tokenize: 'x' })" },
      {
        code: 'module.exports = () => ({ res: { statusCode: 418, body: { at: Math.random() } } })',
        runtime: { image: 'node22' },
      },
    ]) {
      const { id } = await createReactor(tenant, given);
      const headers = { 'svc-idempotency-key': 'once' };
      const call = () => tenant.send('POST', `/reactors/${id}/react`, { key, body: {}, headers });
      const [first, again] = [await call(), await call()];
      assert.equal(again.status, first.status);
      assert.equal(again.text, first.text);
    }
    assert.equal((await tenant.rows('tokens')).length, 1);
    const invoked = (await tenant.rows('logs')).filter(({ operation }) => operation === 'invoke');
    assert.equal(invoked.length, 2);
  });

  test('403: tokens are stored under the rules of the caller, and not without token:create', async () => {
    const tenant = await newTenant();
    const code = "module.exports = () => ({ tokenize: { a: 'b' } })";
    const called = await react(tenant, { code }, { key: await invoker(tenant) });
    assert.equal(called.status, 403, called.text);
    assert.deepEqual(await tenant.rows('tokens'), []);
    const failed = (await entriesOf(tenant, 'reactor')).at(-1);
    assert.match(failed?.message ?? '', /^Reactor failed: .*its result was not tokenized$/);
  });

  test('400: what is to be tokenized is not valid, named by its path', async () => {
    const tenant = await newTenant();
    const code =
      "module.exports = () => ({ tokenize: { c: { type: 'card', data: { number: '1' } } } })";
    const called = await react(tenant, { code });
    assert.equal(called.status, 400, called.text);
    assert.ok(Object.keys(called.body.errors).every((path) => path.startsWith('tokenize.c.')));
  });

  // Of one tenant, whose process they share: to start one takes longer than all else of such a call.
  let thrower: Promise<TestTenant> | undefined;

  for (const [name, status, detail] of [
    ['BadRequestError', 400, 'Bad Request'],
    ['InvalidReactorConfigurationError', 400, 'Invalid Reactor Configuration'],
    ['AuthenticationError', 401, 'Authentication Failed'],
    ['InvalidPaymentMethodError', 402, 'Invalid Payment Method'],
    ['AuthorizationError', 403, 'Forbidden'],
    ['RateLimitError', 429, 'Rate Limit Exceeded'],
    ['ReactorRuntimeError', 500, 'Reactor Runtime Error'],
    ['ServiceUnavailableError', 503, 'Service Unavailable'],
  ] as const) {
    test(`${status}: the code throws ${name}, with its messages`, async () => {
      thrower ??= newTenant();
      const tenant = await thrower;
      const code = `const { ${name} } = require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
        module.exports = () => { throw new ${name}({ field: 'is wrong' }) }`;
      const called = await react(tenant, { code });
      assert.equal(called.status, status, called.text);
      assert.equal(called.body.detail, detail);
      assert.deepEqual(called.body.errors, { field: ['is wrong'] });
      const failed = (await entriesOf(tenant, 'reactor')).at(-1);
      assert.match(
        failed?.message ?? '',
        new RegExp(`^Reactor failed: sync, after \\d+ ms, ${name}$`),
      );
    });
  }

  test('500: another error says nothing of what the code was given, but the log of the call does', async () => {
    const tenant = await newTenant();
    const code =
      "module.exports = (req) => { console.log('began'); return JSON.parse(req.args.text) }";
    const { id } = await createReactor(tenant, { code });
    const key = await invoker(tenant);
    const body = { args: { text: 'MARKER-4242' } };
    const called = await tenant.send('POST', `/reactors/${id}/react`, { key, body });
    assert.equal(called.status, 500);
    assert.equal(called.body.detail, 'Reactor Runtime Error');
    assert.doesNotMatch(called.text, /MARKER/);
    assert.doesNotMatch(JSON.stringify(tenant.vault.logged), /MARKER/);
    const logs = await tenant.send('GET', `/reactors/${id}/logs`, { key: tenant.managementKey });
    const [logged] = logs.body.data;
    assert.equal(logged.outcome, 'failed');
    assert.equal(logged.lines[0].text, 'began');
    assert.equal(logged.lines.at(-1).level, 'error');
    assert.equal((await tenant.send('GET', `/reactors/${id}/logs`, { key })).status, 403);
  });

  test('any status: CustomHttpResponseError is the response, unless no response can have its status', async () => {
    const tenant = await newTenant();
    const thrown = (status: number) => `const { CustomHttpResponseError } =
      require('@basis-theory/basis-theory-reactor-formulas-sdk-js');
      module.exports = () => { throw new CustomHttpResponseError(
        { status: ${status}, headers: { 'X-Own': 'yes' }, body: { own: true } }) }`;
    const called = await react(tenant, { code: thrown(418) });
    assert.equal(called.status, 418, called.text);
    assert.deepEqual(called.body, { own: true });
    assert.equal(called.headers.get('x-own'), 'yes');
    assert.equal((await react(tenant, { code: thrown(101) })).status, 500);
  });

  test('500: what overstays its time, or returns what is no response', async () => {
    const tenant = await newTenant();
    // Only what never ends has a short limit: on a busy machine the others could overstay it as well.
    for (const [code, timeout, message] of [
      ['module.exports = () => { for (;;) {} }', 1, /longer than its time limit/],
      ["module.exports = () => 'text'", 30, /must return an object with raw or tokenize/],
      ["module.exports = () => ({ raw: 'x'.repeat(2 ** 21) })", 30, /more than 1 MB/],
    ] as const) {
      const called = await react(tenant, { code, runtime: { timeout } });
      assert.equal(called.status, 500, called.text);
      assert.equal(called.body.detail, 'Reactor Runtime Error');
      assert.match(called.body.errors.error[0], message);
    }
  });

  test('400: a body that the reactor does not take, and expressions that fail, named', async () => {
    const tenant = await newTenant();
    const { id } = await createReactor(tenant);
    const key = await invoker(tenant);
    const send = (body: unknown) => tenant.send('POST', `/reactors/${id}/react`, { key, body });
    for (const [body, path, message] of [
      [{ args: 1 }, 'args', /must be an object/],
      [[], 'body', /must be an object/],
      [{ args: {}, other: 1 }, 'body', /no attribute but args/],
      [{ args: {}, callback_url: 'https://a.example' }, 'callback_url', /react-async.*webhook/],
      [{ args: { a: '{{ config: NOPE }}' } }, 'args', /expression that fails/],
      [{ args: { a: `{{ ${missing} }}` } }, 'args', /tokens that exist/],
      [
        { args: Object.fromEntries(Array.from({ length: 101 }, (_, at) => [at, `{{ t-${at} }}`])) },
        'args',
        /at most 100 tokens/,
      ],
    ] as const) {
      const called = await send(body);
      assert.equal(called.status, 400, called.text);
      assert.match(called.body.errors[path]?.[0] ?? called.text, message);
    }
    assert.ok(
      (await entriesOf(tenant, 'reactor')).every(
        ({ result, operation }) => operation !== 'complete' || result !== 'success',
      ),
    );
  });

  test('403 and 404: a token that the caller may not use, a reactor that is not there', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({ type: 'token', data: 'x', containers: ['/a/'] });
    const { id } = await createReactor(tenant);
    const key = await tenant.holder({ container: '/b/', permissions: ['reactor:invoke'] });
    const body = { args: { a: `{{ ${token.id} }}` } };
    const refused = await tenant.send('POST', `/reactors/${id}/react`, { key, body });
    assert.equal(refused.status, 403, refused.text);
    const using = await tenant.holder({ container: '/a/', permissions: ['token:use'] });
    const allowed = await tenant.send('POST', `/reactors/${id}/react`, { key: using, body });
    assert.deepEqual(allowed.body, { raw: { a: 'x' } }, allowed.text);
    const reader = await tenant.holder({ container: '/a/', permissions: ['token:read'] });
    const path = `/reactors/${id}/react`;
    assert.equal((await tenant.send('POST', path, { key: reader, body })).status, 403);
    const none = await tenant.send('POST', `/reactors/${missing}/react`, { key, body: {} });
    assert.equal(none.status, 404);
    assert.ok(echo);
  });

  test('413: arguments of more than 1 MB, values included', async () => {
    const tenant = await newTenant();
    const { body: token } = await tenant.token({ type: 'token', data: 'x'.repeat(400_000) });
    const { id } = await createReactor(tenant);
    const key = await invoker(tenant);
    const three = Array.from({ length: 3 }, () => `{{ ${token.id} }}`);
    const call = (as: string) =>
      tenant.send('POST', `/reactors/${id}/react`, { key: as, body: { args: { three } } });
    const reader = await tenant.holder({ permissions: ['reactor:invoke', 'token:read'] });
    const called = await call(reader);
    assert.equal(called.status, 413, called.text);
    assert.equal((await call(key)).status, 200, 'how long values are is not to be learned');
  });
});
