/** Calling a proxy that was set up before: what reaches the destination, and what comes back. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer, chunked, large, withoutLength } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { beginRequest, connectTo } from '../support/raw-request.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
const last = () => {
  const request = destination.requests.at(-1);
  assert.ok(request);
  return request;
};

onBothEngines('Calling a proxy', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('sends method, path, query, headers and body on, and gives back what comes', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: `${url}/api/` });
    const cors = ['Access-Control-Allow-Origin', 'https://shop.example'];
    const headers = [
      'X-Own',
      'yes',
      'Content-Type',
      'text/plain',
      'SVC-Trace-Id',
      'theirs',
      ...cors,
    ];
    destination.behave(answer(201, headers, 'done'));
    const received = await call('POST', '/foo/b%20r%2F?a=%7b&b=x%27y', {
      body: { amount: 1 },
      headers: {
        authorization: 'Bearer caller',
        cookie: 'a=b',
        origin: 'https://shop.example',
        'svc-trace-id': 'mine',
        connection: 'x-hop',
        'x-hop': 'gone',
      },
    });
    assert.equal(received.status, 201);
    assert.equal(received.text, 'done');
    assert.equal(received.headers.get('x-own'), 'yes');
    assert.equal(received.headers.get('content-type'), 'text/plain');
    assert.equal(received.headers.get('svc-proxy-destination-status'), '201');
    assert.equal(received.headers.get('svc-trace-id'), 'theirs');
    assert.equal(received.headers.get('svc-proxy-trace-id'), 'mine');
    assert.equal(received.headers.get('access-control-allow-origin'), 'https://shop.example');
    const { method, url: sent, body, headers: names } = last();
    assert.equal(method, 'POST');
    assert.equal(sent, '/api/foo/b%20r%2F?a=%7b&b=x%27y');
    assert.equal(body.toString(), '{"amount":1}');
    assert.equal(headerOf(names, 'authorization'), 'Bearer caller');
    assert.equal(headerOf(names, 'cookie'), 'a=b');
    assert.equal(headerOf(names, 'host'), new URL(url).host);
    assert.equal(headerOf(names, 'x-hop'), undefined);
    assert.deepEqual(
      names.filter((name, at) => at % 2 === 0 && /^svc-/i.test(name)),
      [],
    );
  });

  test('takes the key from the query, which does not reach the destination', async () => {
    const tenant = await newTenant();
    const { key } = await proxyOf(tenant, { destination_url: url });
    destination.behave(answer());
    const path = `/proxy/x?a=1&svc-proxy-key=${key}&b=%32&c`;
    assert.equal((await tenant.send('GET', path)).status, 200);
    assert.equal(last().url, '/x?a=1&b=%32&c');
    assert.equal((await tenant.send('GET', `/proxy?svc-proxy-key=${key}`)).status, 200);
    assert.equal(last().url, '/');
  });

  test('works with every method, and with bodies of none, no length and chunks', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      destination.behave(answer(200, [], method));
      assert.equal((await call(method, '/m')).text, method);
      assert.equal(last().method, method);
    }
    destination.behave(answer(200, ['Content-Length', '12'], ''));
    const head = await call('HEAD', '/m');
    assert.equal(head.headers.get('content-length'), '12');
    assert.equal(last().method, 'HEAD');
    for (const status of [204, 304, 404, 500]) {
      destination.behave(answer(status));
      const received = await call('GET', '/s');
      assert.equal(received.status, status);
      assert.equal(received.headers.get('svc-proxy-destination-status'), String(status));
      assert.equal(received.text, '');
    }
    destination.behave(withoutLength('to the end'));
    assert.equal((await call('GET', '/s')).text, 'to the end');
    destination.behave(chunked(['in ', 'parts'], ['X-Sum: 1']));
    assert.equal((await call('GET', '/s')).text, 'in parts');
    destination.behave(answer(302, ['Location', 'https://127.0.0.1/']));
    const redirect = await call('GET', '/s');
    assert.equal(redirect.status, 302);
    assert.equal(redirect.headers.get('location'), 'https://127.0.0.1/');
    const traced = await call('TRACE', '/s');
    assert.equal(traced.status, 405);
    assert.match(traced.headers.get('allow') ?? '', /HEAD/);
    const preflight = { 'access-control-request-method': 'POST' };
    assert.equal((await call('OPTIONS', '/s', { headers: preflight })).status, 204);
  });

  test('the trailers of a response come after its body', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url });
    destination.behave(chunked(['in ', 'parts'], ['X-Sum: 7']));
    const { socket, answer: text } = await connectTo(tenant.vault.url);
    const own = [`SVC-API-KEY: ${tenant.key}`, `SVC-PROXY-KEY: ${key}`, 'Connection: close'];
    socket.write(`${['GET /proxy HTTP/1.1', 'Host: localhost', ...own].join('\r\n')}\r\n\r\n`);
    assert.match(await text, /\r\n0\r\nX-Sum: 7\r\n\r\n$/);
  });

  test('400: a body with another transfer coding than chunks, which would be lost; nothing is sent', async () => {
    const tenant = await newTenant();
    const { key } = await createProxy(tenant, { destination_url: url });
    destination.behave(answer());
    const before = destination.requests.length;
    const own = [`SVC-API-KEY: ${tenant.key}`, `SVC-PROXY-KEY: ${key}`, 'Connection: close'];
    for (const [coding, expected] of [
      ['gzip, chunked', /^HTTP\/1\.1 400 .*"transfer-encoding":\["must be chunked alone/s],
      ['Chunked', /^HTTP\/1\.1 200 /],
    ] as const) {
      const { socket, answer: text } = await connectTo(tenant.vault.url);
      const head = ['POST /proxy HTTP/1.1', 'Host: localhost', `Transfer-Encoding: ${coding}`];
      socket.write(`${[...head, ...own].join('\r\n')}\r\n\r\n2\r\nab\r\n0\r\n\r\n`);
      assert.match(await text, expected, coding);
    }
    assert.equal(destination.requests.length, before + 1);
  });

  test('passes bodies of any size as streams, binary ones and text without expressions', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    const bytes = 12 * 1024 * 1024;
    destination.behave(answer());
    for (const type of ['application/octet-stream', 'text/plain', 'application/json']) {
      const body = Buffer.alloc(bytes, 'x');
      const received = await call('PUT', '/up', { body, headers: { 'content-type': type } });
      assert.equal(received.status, 200, received.text);
      assert.equal(last().bodyBytes, bytes);
    }
    destination.behave(large(bytes));
    assert.equal((await call('GET', '/down')).text.length, bytes);
  });

  test('sends a chunked upload before it has ended, and breaks off one that its caller leaves', async () => {
    const tenant = await newTenant();
    const { key } = await proxyOf(tenant, { destination_url: url });
    const began = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    destination.behave(({ request }) => {
      request.once('data', () => began.resolve());
      request.once('close', () => ended.resolve());
    });
    const headers = {
      'svc-api-key': tenant.key,
      'svc-proxy-key': key,
      'content-type': 'application/octet-stream',
    };
    const opened = await beginRequest({
      url: tenant.vault.url,
      method: 'POST',
      path: '/proxy',
      headers,
    });
    opened.socket.write('5\r\nbegun\r\n');
    await began.promise;
    opened.socket.destroy();
    await ended.promise;
  });

  test('limits expressions to bodies of 5 MB, and completes no larger request', async () => {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'token', data: 'value' })).body;
    const call = await proxyOf(tenant, { destination_url: url });
    const headers = { 'content-type': 'text/plain' };
    const expression = `{{ ${id} }}`;
    const max = 5 * 1024 * 1024;
    destination.behave(answer());
    const fits = expression.padEnd(max, 'x');
    assert.equal((await call('POST', '', { body: fits, headers })).status, 200);
    assert.ok(last().body.toString().startsWith('valuexx'));
    const count = destination.requests.length;
    for (const body of [`${fits}x`, expression.padStart(max + 1, 'x')]) {
      const received = await call('POST', '', { body, headers }).catch(() => undefined);
      // A client that is still sending may find its connection closed.
      if (received) assert.equal(received.status, 413, received.text);
      if (received) assert.equal(received.body.proxy_error.status, 413);
    }
    assert.equal(destination.requests.length, count);
  });

  test('sets Connection and Keep-Alive as the caller asks', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    destination.behave(answer());
    const asked = { 'svc-proxy-connection': 'close', 'svc-proxy-keep-alive': 'timeout=5, max=9' };
    assert.equal((await call('GET', '', { headers: asked })).status, 200);
    assert.equal(headerOf(last().headers, 'connection'), 'close');
    assert.equal(headerOf(last().headers, 'keep-alive'), 'timeout=5, max=9');
    for (const [name, value] of [
      ['svc-proxy-connection', 'upgrade'],
      ['svc-proxy-keep-alive', 'x'],
    ] as const) {
      const refused = await call('GET', '', { headers: { [name]: value } });
      assert.equal(refused.status, 400);
      assert.deepEqual(Object.keys(refused.body.proxy_error.errors), [name]);
    }
  });

  test('counts calls by the id of the proxy, and not by where they go', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: `${url}/metered` });
    destination.behave(answer(404));
    await call('GET', '/secret-path');
    const { text } = await tenant.vault.send('GET', '/metrics');
    assert.match(
      text,
      new RegExp(`proxy_call_duration_seconds_count\\{proxy="${call.id}",status="4xx"\\} 1`),
    );
    assert.doesNotMatch(text, /metered|secret-path|localhost/);
  });

  test('closes the connection to the destination when the caller leaves before it responds', async () => {
    const tenant = await newTenant();
    const { key } = await proxyOf(tenant, { destination_url: url });
    const closed = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    destination.behave(({ response }) => {
      response.once('close', () => closed.resolve());
      reached.resolve();
    });
    const { socket } = await connectTo(tenant.vault.url);
    const own = [`SVC-API-KEY: ${tenant.key}`, `SVC-PROXY-KEY: ${key}`];
    socket.write(`${['GET /proxy HTTP/1.1', 'Host: localhost', ...own].join('\r\n')}\r\n\r\n`);
    await reached.promise;
    socket.destroy();
    await closed.promise;
  });

  test('reads from the destination no faster than its caller does', async () => {
    const tenant = await newTenant();
    const { key } = await proxyOf(tenant, { destination_url: url });
    const bytes = 64 * 1024 * 1024;
    let sent = 0;
    destination.behave(
      large(bytes, (more) => {
        sent += more;
      }),
    );
    const { socket } = await connectTo(tenant.vault.url);
    const own = [`SVC-API-KEY: ${tenant.key}`, `SVC-PROXY-KEY: ${key}`];
    socket.pause();
    socket.write(`${['GET /proxy HTTP/1.1', 'Host: localhost', ...own].join('\r\n')}\r\n\r\n`);
    // Once what is in between is full, nothing more is sent, however often this looks.
    let seen = -1;
    for (let same = 0; same < 20; same = sent > 0 && sent === seen ? same + 1 : 0) {
      seen = sent;
      assert.equal((await tenant.vault.send('GET', '/ping')).status, 200);
    }
    assert.ok(sent < bytes / 2, `${sent} bytes`);
    socket.destroy();
  });
});

onBothEngines('Calling a proxy under another prefix', (engine) => {
  const prefixes = { STRONGROOM_HEADER_PREFIXES: 'SVC,BT' };
  const newTenant = tenantsOf(engine, { environment: { ...environment, ...prefixes } });

  test('takes its headers, answers with them and forwards none of either', async () => {
    const tenant = await newTenant();
    destination.behave(answer());
    const { key } = await createProxy(tenant, { destination_url: url, require_auth: false });
    for (const sent of [
      { headers: { 'bt-api-key': tenant.key, 'bt-proxy-key': key, 'svc-x': '1' } },
      { headers: { 'bt-proxy-key': key, 'bt-trace-id': 'trace' } },
    ]) {
      const received = await tenant.vault.send('GET', '/proxy/x', sent);
      assert.equal(received.status, 200, received.text);
      assert.equal(received.headers.get('bt-proxy-destination-status'), '200');
      assert.ok(received.headers.get('bt-trace-id'));
      assert.equal(received.headers.get('svc-proxy-destination-status'), null);
      const own = last().headers.filter((name, at) => at % 2 === 0 && /^(?:svc|bt)-/i.test(name));
      assert.deepEqual(own, []);
    }
    await tenant.vault.send('GET', `/proxy/y?bt-proxy-key=${key}&a`);
    assert.equal(last().url, '/y?a');
  });
});
