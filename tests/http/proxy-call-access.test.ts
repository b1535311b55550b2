/** Who may call which proxy, with which key, to where. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy, sendProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { connectTo } from '../support/raw-request.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer(200, [], 'from the destination'));

function refused(received: Received, status: number): string {
  assert.equal(received.status, status, received.text);
  assert.equal(received.headers.get('svc-proxy-destination-status'), null);
  assert.equal(received.body.proxy_error.status, status);
  return received.body.proxy_error.detail;
}

/** The path as it is, which other clients would change. */
async function sendRaw(tenant: TestTenant, path: string, key: string): Promise<string> {
  const { socket, answer: text } = await connectTo(tenant.vault.url);
  const lines = [`GET ${path} HTTP/1.1`, 'Host: localhost', `SVC-API-KEY: ${tenant.key}`];
  socket.write(`${[...lines, `SVC-PROXY-KEY: ${key}`, 'Connection: close'].join('\r\n')}\r\n\r\n`);
  return text;
}

onBothEngines('Access to proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });
  const ephemeral = (more: object = {}) => ({
    headers: { 'svc-proxy-url': `${url}/base`, ...more },
  });

  /** Its usual key may call proxies, too. */
  const invoking = async (): Promise<TestTenant> => {
    const tenant = await newTenant();
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    return { ...tenant, send: (method, path, sent) => tenant.send(method, path, { key, ...sent }) };
  };

  test('401: a call needs a key, unless its proxy asks for none', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url });
    const call = { headers: { 'svc-proxy-key': key } };
    refused(await tenant.vault.send('GET', '/proxy', call), 401);
    refused(await tenant.vault.send('GET', '/proxy', { ...call, key: 'nonsense' }), 401);
    refused(await tenant.vault.send('GET', '/proxy', ephemeral()), 401);
    const open = await createProxy(tenant, { destination_url: url, require_auth: false });
    const anonymous = { headers: { 'svc-proxy-key': open.key } };
    assert.equal(
      (await tenant.vault.send('GET', '/proxy', anonymous)).text,
      'from the destination',
    );
  });

  test('403: a call needs proxy:invoke, or token:use for a proxy that was set up before', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    for (const [permission, configured, described] of [
      ['proxy:invoke', 200, 200],
      ['token:use', 200, 403],
      ['token:read', 403, 403],
    ] as const) {
      const key = await tenant.application({ permissions: [permission] });
      assert.equal((await call('GET', '', { key })).status, configured, permission);
      const received = await tenant.send('GET', '/proxy', { key, ...ephemeral() });
      assert.equal(received.status, described, permission);
    }
    refused(await call('GET', '', { key: tenant.managementKey }), 403);
    assert.ok((await tenant.logged('proxy')).includes('invoke denied'));
  });

  test('404: a proxy that is unknown, deleted or of another tenant', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const { key, id } = await createProxy(other, { destination_url: url });
    const calling = (one: string) =>
      tenant.send('GET', '/proxy', { headers: { 'svc-proxy-key': one } });
    refused(await calling(key), 404);
    refused(await calling(`${key.startsWith('x') ? 'y' : 'x'}${key.slice(1)}`), 404);
    refused(await calling('nonsense'), 404);
    refused(await tenant.vault.send('GET', '/proxy?svc-proxy-key=nonsense'), 404);
    const own = { headers: { 'svc-proxy-key': key } };
    assert.equal((await other.send('GET', '/proxy', own)).status, 200);
    await sendProxy(other, 'DELETE', `/${id}`);
    refused(await other.send('GET', '/proxy', own), 404);
    assert.ok((await tenant.logged('proxy')).includes('invoke failed'));
  });

  test('an ephemeral proxy sends where the caller says, and a key of a proxy comes first', async () => {
    const tenant = await invoking();
    const received = await tenant.send('GET', '/proxy/a?b=1', ephemeral());
    assert.equal(received.status, 200, received.text);
    assert.equal(destination.requests.at(-1)?.url, '/base/a?b=1');
    const { key } = await createProxy(tenant, { destination_url: `${url}/set-up` });
    await tenant.send('GET', '/proxy/a', ephemeral({ 'svc-proxy-key': key }));
    assert.equal(destination.requests.at(-1)?.url, '/set-up/a');
    for (const wrong of [
      'http://localhost',
      'https://127.0.0.1',
      'https://u:p@x.example',
      'x',
      `${url}?a`,
    ]) {
      const answered = await tenant.send('GET', '/proxy', ephemeral({ 'svc-proxy-url': wrong }));
      assert.match(refused(answered, 400), /svc-proxy-url/, wrong);
    }
    assert.match(refused(await tenant.send('GET', '/proxy'), 400), /SVC-PROXY-KEY/);
  });

  test('403: with egress policies no value goes past them, by an ephemeral proxy or a session', async () => {
    const tenant = await newTenant();
    await tenant.token({ id: 'secret', type: 'token', data: 'xyzzy' });
    const egress = [{ host: 'api.provider.example', methods: ['GET'] }];
    const key = await tenant.application({ permissions: ['proxy:invoke', 'token:use'], egress });
    const before = destination.requests.length;
    const sending = { ...ephemeral({ 'x-value': '{{ secret }}' }), key };
    assert.match(refused(await tenant.send('GET', '/proxy', sending), 403), /egress policies/);
    assert.equal(destination.requests.length, before);
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { body: session } = await tenant.send('POST', '/sessions', { key: publicKey });
    const authorize = (permissions: readonly string[]) =>
      tenant.send('POST', '/sessions/authorize', {
        key,
        body: { nonce: session.nonce, permissions },
      });
    const { status, text } = await authorize(['proxy:invoke']);
    assert.equal(status, 403, text);
    assert.match(text, /egress policies/);
    assert.equal((await authorize(['token:use'])).status, 200);
    const call = await proxyOf(tenant, { destination_url: url });
    assert.equal((await call('GET', '', { key })).status, 200);
  });

  test('settings of the tenant refuse ephemeral proxies and destinations', async () => {
    const tenant = await invoking();
    const call = await proxyOf(tenant, { destination_url: url });
    await tenant.set({ disable_ephemeral_proxy: 'true' });
    assert.match(
      refused(await tenant.send('GET', '/proxy', ephemeral()), 403),
      /disable_ephemeral/,
    );
    assert.equal((await call('GET', '')).status, 200);
    await tenant.set({ proxy_destinations: '*.psp.example.com, other' });
    assert.match(refused(await call('GET', ''), 403), /proxy_destinations/);
    refused(await tenant.send('GET', '/proxy', ephemeral()), 403);
    await tenant.set({ proxy_destinations: 'other,local*' });
    assert.equal((await call('GET', '')).status, 200);
    assert.equal((await tenant.send('GET', '/proxy', ephemeral())).status, 200);
  });

  test('allowed_paths and allowed_methods refuse everything else', async () => {
    const tenant = await newTenant();
    const rules = { allowed_paths: ['/charges', '/cards/*'], allowed_methods: ['GET', 'POST'] };
    const call = await proxyOf(tenant, { destination_url: url, ...rules });
    for (const path of ['/charges', '/cards/', '/cards/1/2', '/charges?x=/refunds']) {
      assert.equal((await call('GET', path)).status, 200, path);
    }
    for (const path of ['', '/charges/', '/refunds', '/Charges', '/%63harges']) {
      assert.match(refused(await call('GET', path), 403), /allowed_paths/, path);
    }
    assert.match(refused(await call('PUT', '/charges'), 403), /allowed_methods/);
    assert.equal((await call('HEAD', '/charges')).status, 403);
  });

  test('no path leads out of the base of the destination', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: `${url}/base` });
    const count = destination.requests.length;
    for (const path of [
      ...['/..', '/../x', '/a/../../x', '/.', '/%2e%2e/x', '/%2E./x', '/..%2fx', '/a%2F..%2f..'],
      ...['/%252e%252e/x', '/..%5cx', '/..\\x', '/a\\b', '/..;/x', '/..%3bx/y', '/a#b'],
      // What other decoders, trimmers and parsers make of a segment.
      ...['/%c0%ae%c0%ae/x', '/%c0%ae./x', '/%c0%2e%c0%2e/x', '/%e0%80%ae%e0%80%ae/x'],
      ...['/%f0%80%80%ae./x', '/%fc%80%80%80%80%ae./x', '/..%c0%afx', '/..%c1%9cx'],
      ...['/%u002e%u002e/x', '/%ef%bc%8e%ef%bc%8e/x', '/%e2%80%a5/x', '/..%ef%bc%8fx'],
      ...[
        '/..%00/x',
        '/..%00.png',
        '/.%00./x',
        '/..%20/x',
        '/%20../x',
        '/.%09./x',
        '/..%0d%0a',
        '/..%0ax',
      ],
      ...['/..%23/x', '/..%23x', '/..%3f/x', '/..%3fx', '/..%ff/x', '/..%20./x', '/..%e2%80%8b/x'],
      ...['/%25%32%65%25%32%65/x', '/%252e%252e%252fx', '/%25252e%25252e/x', '/..%255cx'],
      ...['/%2525252525252e./x', '/..%253bx/y', '/..%2500/x', '/..;a=b/x', '/.;/x', '/a//../x'],
    ]) {
      const text = await sendRaw(tenant, `/proxy${path}`, key);
      assert.match(text, /^HTTP\/1\.1 400 /, path);
      assert.match(text, /proxy_error|malformed/, path);
    }
    assert.equal(destination.requests.length, count);
    for (const path of [
      '/a..b',
      '/...',
      '/%2e%2e%2e',
      '/a%2Fb',
      "/a'(b)",
      '/a%00',
      '//x',
      '//other.example/x',
      '/a//b',
      '/a/b//',
      '/100%25',
      '/%e9t%e9',
      '/a%20.b',
      '/.well-known/x;v=1',
      '/%23/%3f',
      '/ü'.replace('ü', '%c3%bc'),
    ]) {
      assert.match(await sendRaw(tenant, `/proxy${path}`, key), /^HTTP\/1\.1 200 /, path);
      assert.equal(destination.requests.at(-1)?.url, `/base${path}`);
    }
  });

  test('a Host that is a proxy leads to its destination and to no route of the vault', async () => {
    const tenant = await newTenant();
    const host = `${tenant.id}.in.example`;
    const send = (path: string, name = host) =>
      tenant.vault.send('GET', path, { headers: { host: name } });
    assert.equal((await send('/healthz')).status, 200);
    assert.equal((await send('/nowhere')).status, 404);
    const { id } = await createProxy(tenant, {
      destination_url: `${url}/in`,
      proxy_host: host,
      require_auth: false,
    });
    for (const [path, reached] of [
      ['/healthz', '/in/healthz'],
      ['/tokens?x=1', '/in/tokens?x=1'],
      ['/proxy/a', '/in/proxy/a'],
      ['/', '/in'],
    ] as const) {
      assert.equal((await send(path)).text, 'from the destination', path);
      assert.equal(destination.requests.at(-1)?.url, reached);
    }
    assert.equal((await send('/x', `${host.toUpperCase()}:8443`)).text, 'from the destination');
    await sendProxy(tenant, 'PATCH', `/${id}`, { body: { require_auth: true } });
    refused(await send('/x'), 401);
    await sendProxy(tenant, 'DELETE', `/${id}`);
    assert.equal((await send('/healthz')).headers.get('svc-proxy-destination-status'), null);
    assert.equal((await send('/x')).status, 404);
  });

  test('400: idempotency keys are not supported; GET, HEAD, OPTIONS and DELETE ignore them', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    const headers = { 'svc-idempotency-key': 'once' };
    for (const method of ['POST', 'PUT', 'PATCH']) {
      assert.match(refused(await call(method, '', { headers }), 400), /svc-idempotency-key/);
    }
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE']) {
      const count = destination.requests.length;
      for (const _time of ['first', 'again']) {
        assert.equal((await call(method, '', { headers })).status, 200, method);
      }
      const received = destination.requests.slice(count);
      assert.equal(received.length, 2, method);
      assert.ok(!received.some((one) => one.headers.includes('svc-idempotency-key')));
    }
  });
});

onBothEngines('Limits of proxies without keys', (engine) => {
  const limits = { STRONGROOM_RATE_LIMITS: '' };
  const newTenant = tenantsOf(engine, { environment: { ...environment, ...limits } });

  test('429: 50 calls in 10 s by proxy and address', async () => {
    const tenant = await newTenant();
    const given = { destination_url: url, require_auth: false };
    const [one, other] = [await createProxy(tenant, given), await createProxy(tenant, given)];
    const call = (key: string) =>
      tenant.vault.send('GET', '/proxy', { headers: { 'svc-proxy-key': key } });
    for (let count = 0; count < 50; count++) assert.equal((await call(one.key)).status, 200);
    const limited = await call(one.key);
    refused(limited, 429);
    assert.ok(limited.headers.get('retry-after'));
    assert.equal((await call(other.key)).status, 200);
  });
});
