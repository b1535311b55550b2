/** Transforms of type code: what they make of requests before the destination and of responses after it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, leastProxy, sendProxy } from '../support/proxies.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { type Given, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
const last = () => {
  const request = destination.requests.at(-1);
  assert.ok(request);
  return request;
};

const errors = "require('@basis-theory/basis-theory-reactor-formulas-sdk-js')";
const json = ['Content-Type', 'application/json'];
const newer = { options: { runtime: { image: 'node22' } } };
const request = (code: string, more: Given = {}) => ({
  destination_url: url,
  request_transforms: [{ type: 'code', code, ...more }],
});
const response = (code: string, more: Given = {}) => ({
  destination_url: url,
  response_transforms: [{ type: 'code', code, ...more }],
});

onBothEngines('Code transforms of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });
  const calling = async (given: Given) => {
    const tenant = await newTenant();
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const call = await proxyOf(tenant, given);
    const send = (path: string, body?: unknown, headers = {}) =>
      call(body === undefined ? 'GET' : 'POST', path, { key, body, headers });
    return { tenant, send, id: call.id };
  };

  test('a request is changed after its values are written and logged, before it is sent', async () => {
    destination.behave(answer(200, json, '{}'));
    const { tenant, send, id } = await calling({
      ...request(`module.exports = async ({ args, configuration, bt }) => ({
        headers: { ...args.headers, 'X-Seen': [args.method, args.path, args.query, String(bt)].join(' ') },
        body: { ...args.body, secret: configuration.SECRET } })`),
      configuration: { SECRET: 'sk' },
    });
    const { body: token } = await tenant.token({ type: 'token', data: 'value' });
    const called = await send('/sub?a=b', { given: `{{ ${token.id} }}` }, { 'x-own': 'kept' });
    assert.equal(called.status, 200, called.text);
    assert.equal(called.headers.get('svc-proxy-destination-status'), '200');
    assert.deepEqual(JSON.parse(last().body.toString()), { given: 'value', secret: 'sk' });
    assert.equal(headerOf(last().headers, 'x-seen'), 'POST /sub ?a=b null');
    assert.equal(headerOf(last().headers, 'x-own'), 'kept');
    const entries = await tenant.rows('logs');
    assert.ok(entries.some(({ message }) => message.endsWith(`proxy ${id}`)));
  });

  test('a header that code sets is the only one of its name, however a caller spells it', async () => {
    destination.behave(answer(200, json, '{}'));
    const { send } = await calling(
      request(`module.exports = async ({ args }) => ({
        headers: { ...args.headers, 'X-Scope': 'own' }, body: args.body })`),
    );
    for (const name of ['x-scope', 'X-Scope', 'X-SCOPE']) {
      const called = await send('/sub', { a: 1 }, { [name]: 'everything' });
      assert.equal(called.status, 200, called.text);
      const sent = last().headers.filter((one) => one.toLowerCase() === 'x-scope');
      assert.equal(sent.length, 1);
      assert.equal(headerOf(last().headers, 'x-scope'), 'own');
    }
  });

  test('of the newer image it is an event, and may answer in the place of the destination', async () => {
    destination.behave(answer(200, json, '{}'));
    const { tenant, send } = await calling(
      request(
        `module.exports = async (event) => event.req.body.stop
          ? { res: { statusCode: 402, headers: { 'X-Own': 'yes' }, body: { stopped: true } } }
          : { req: { body: { forwarded: event.req.body } } }`,
        newer,
      ),
    );
    assert.equal((await send('', { a: 1 })).status, 200);
    assert.deepEqual(JSON.parse(last().body.toString()), { forwarded: { a: 1 } });
    const count = destination.requests.length;
    const stopped = await send('', { stop: true });
    assert.equal(stopped.status, 402, stopped.text);
    assert.deepEqual(stopped.body, { stopped: true });
    assert.equal(stopped.headers.get('x-own'), 'yes');
    assert.equal(stopped.headers.get('svc-proxy-destination-status'), null);
    assert.equal(destination.requests.length, count);
    const messages = (await tenant.rows('logs')).map(({ message }) => message);
    assert.ok(messages.some((message) => /its code responded with 402/.test(message)));
  });

  test('a response of more than 1 MiB is not given to code', async () => {
    const { send } = await calling(response('module.exports = () => ({ body: { seen: true } })'));
    for (const [length, status] of [
      [1_048_574, 200],
      [1_048_575, 502],
    ] as const) {
      destination.behave(answer(200, json, JSON.stringify('x'.repeat(length))));
      const called = await send('', {});
      assert.equal(called.status, status, called.text);
    }
  });

  test('CustomHttpResponseError is the response as it is; the destination is not called', async () => {
    const { send } = await calling(
      request(`module.exports = () => { throw new (${errors}.CustomHttpResponseError)({
        status: 418, headers: { 'X-Own': 'yes' }, body: { own: true } }) }`),
    );
    const count = destination.requests.length;
    const called = await send('', {});
    assert.equal(called.status, 418, called.text);
    assert.deepEqual(called.body, { own: true });
    assert.equal(destination.requests.length, count);
  });

  test('what it throws is wrapped, with its status and messages, and logged', async () => {
    for (const [side, given] of Object.entries({ request, response })) {
      destination.behave(answer(200, json, '{"number":"4242424242424242"}'));
      const { tenant, send } = await calling(
        given(
          `module.exports = () => { throw new (${errors}.InvalidPaymentMethodError)('no funds') }`,
        ),
      );
      const called = await send('', { a: 'MARKER' });
      assert.equal(called.status, 402, `${side} ${called.text}`);
      const { status, detail, title, errors: named } = called.body.proxy_error;
      assert.deepEqual([status, detail], [402, 'Invalid Payment Method']);
      assert.equal(title, 'One or more validation errors occurred.');
      assert.deepEqual(named, { error: ['no funds'] });
      assert.ok((await tenant.logged('proxy')).some((one) => one.startsWith('invoke')));
    }
  });

  test('of any other error nothing is said but that the code failed', async () => {
    for (const given of [request, response]) {
      destination.behave(answer(200, json, '{"number":"MARKER"}'));
      const { send } = await calling(
        given('module.exports = ({ args }) => { throw new Error(JSON.stringify(args.body)) }'),
      );
      const called = await send('', { a: 'MARKER' });
      assert.equal(called.status, 500, called.text);
      assert.equal(called.body.proxy_error.detail, 'Reactor Runtime Error');
      assert.doesNotMatch(called.text, /MARKER/);
    }
  });

  test('a response is changed in the order of its transforms', async () => {
    destination.behave(answer(200, [...json, 'X-From', 'there'], '{"number":"4242424242424242"}'));
    const mask = { type: 'mask', matcher: 'regex', expression: '"(4\\d+)"', replacement: '*' };
    const code = `module.exports = ({ args }) => ({ body: { ...args.body, from: args.headers['X-From'] },
      headers: { 'Content-Type': 'application/json', 'X-New': 'yes' } })`;
    const { send } = await calling({
      destination_url: url,
      response_transforms: [
        mask,
        { code },
        { type: 'append_json', options: { location: '$.last', value: 'x' } },
      ],
    });
    const called = await send('');
    assert.deepEqual(
      called.body,
      { number: '*'.repeat(16), from: 'there', last: 'x' },
      called.text,
    );
    assert.equal(called.headers.get('x-new'), 'yes');
    assert.equal(called.headers.get('x-from'), null);
  });

  test('of the newer image a response is event.res, and may get another status', async () => {
    destination.behave(answer(200, json, '{"a":1}'));
    const { send } = await calling(
      response(
        'module.exports = (event) => ({ res: { statusCode: 201, body: event.res } })',
        newer,
      ),
    );
    const called = await send('');
    assert.equal(called.status, 201, called.text);
    assert.deepEqual(called.body.body, { a: 1 });
    assert.equal(called.body.statusCode, 200);
    assert.equal(called.headers.get('svc-proxy-destination-status'), '200');
  });

  test('a body of more than 1 MB, or that is not text, is refused before the code and the destination', async () => {
    const { send } = await calling(request('module.exports = () => null'));
    const count = destination.requests.length;
    const type = { 'content-type': 'application/octet-stream' };
    const large = await send('', Buffer.alloc(1_048_577, 'a'), type);
    assert.equal(large.status, 413, large.text);
    const bytes = await send('', Buffer.from([0xff, 0xfe]), type);
    assert.equal(bytes.status, 400, bytes.text);
    assert.equal(destination.requests.length, count);
    const most = await send('', Buffer.alloc(1_000_000, 'a'), type);
    assert.equal(most.status, 200, most.text);
    assert.equal(last().body.length, 1_000_000);
  });

  test('writing one: 422 for code that cannot be run, 403 for rights that cannot be lent', async () => {
    const tenant = await newTenant();
    const post = (given: Given, key = tenant.managementKey) =>
      sendProxy(tenant, 'POST', '', { key, body: { ...leastProxy, ...given } });
    const broken = await post({ response_transforms: [{ code: 'module.exports = (' }] });
    assert.equal(broken.status, 422, broken.text);
    assert.match(String(broken.body.errors['response_transforms[0].code']), /does not compile/);
    const { id } = (await tenant.send('GET', '/applications/key')).body;
    const permissions = ['proxy:create', 'proxy:update'];
    const key = await tenant.application({ type: 'management', permissions });
    const request_transforms = [{ code: 'module.exports = () => null' }];
    assert.equal((await post({ request_transforms }, key)).status, 201);
    const own = [
      {
        ...request_transforms[0],
        options: { runtime: { image: 'node22', permissions: ['token:read'] } },
      },
    ];
    assert.equal((await post({ request_transforms: own }, key)).status, 403);
    const lent = await post({ application: { id }, request_transforms }, key);
    assert.equal(lent.status, 403, lent.text);
    assert.match(lent.body.detail, /application:create/);
    const both = await createProxy(tenant, { application: { id }, request_transforms });
    const body = { request_transforms: [{ code: 'module.exports = () => ({})' }] };
    const patched = await sendProxy(tenant, 'PATCH', `/${both.id}`, { key, body });
    assert.equal(patched.status, 403, patched.text);
  });

  test('its tokens are those that the application of the proxy may see', async () => {
    const tenant = await newTenant();
    destination.behave(answer(200, json, '{}'));
    const { body: token } = await tenant.token({ type: 'token', data: 'secret' });
    const { id } = (await tenant.send('GET', '/applications/key')).body;
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const call = await proxyOf(tenant, {
      ...request(`module.exports = async ({ args, bt }) =>
        ({ body: { data: (await bt.tokens.retrieve(args.body.id)).data } })`),
      application: { id },
    });
    const called = await call('POST', '', { key, body: { id: token.id } });
    assert.equal(called.status, 200, called.text);
    assert.deepEqual(JSON.parse(last().body.toString()), { data: 'secret' });
    const read = (await tenant.rows('logs')).findLast(({ operation }) => operation === 'read');
    assert.equal(read?.message, `Token retrieved: by the code of proxy ${call.id}`);
  });
});
