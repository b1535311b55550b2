/** HTTP itself: paths, methods, media types, bodies, headers. Every refusal is a problem document. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { bodyBytesMax } from '../../src/http/protocol/body.ts';
import { onBothEngines } from '../support/engines.ts';
import { connectTo } from '../support/raw-request.ts';
import { tenantsOf } from '../support/tenant.ts';
import type { Received } from '../support/vault.ts';

/** Stands in every refused request, and must not be heard of again. */
const marker = 'mArKeR';

const json = { 'content-type': 'application/json' };

function assertProblem(answer: Received, status: number, code: string): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/problem+json; charset=utf-8');
  assert.equal(answer.headers.get('cache-control'), 'no-store');
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
  assert.equal(answer.body.type, `urn:strongroom:problem:${code}`);
  assert.equal(answer.body.status, status);
  assert.equal(typeof answer.body.title, 'string');
  assert.equal(typeof answer.body.detail, 'string');
  assert.equal(answer.text.includes(marker), false);
}

onBothEngines('HTTP', (engine) => {
  const tenants = tenantsOf(engine);

  test('404: an unknown path, with any method and body', async () => {
    const tenant = await tenants();
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', `/${marker}`],
      ['POST', `/tokens/${marker}/more`],
      ['DELETE', '/v9/tokens'],
      ['GET', '/TOKENS'],
    ] as const) {
      const body = method === 'POST' ? marker : undefined;
      const answer = await tenant.send(method, path, { body });
      assertProblem(answer, 404, 'not_found');
    }
  });

  test('405: a known path with a method it does not have; Allow says which it has', async () => {
    const tenant = await tenants();
    const wrong = [
      ['PUT', '/tokens/some-id', 'DELETE, GET, HEAD, PATCH'],
      ['POST', '/tokens/some-id', 'DELETE, GET, HEAD, PATCH'],
      ['OPTIONS', '/tokens/some-id', 'DELETE, GET, HEAD, PATCH'],
      ['POST', '/tokens/export', 'GET'],
      ['DELETE', '/logs', 'GET, HEAD'],
      ['POST', '/healthz', 'GET, HEAD'],
    ] as const;
    for (const [method, path, allow] of wrong) {
      const sent = method === 'OPTIONS' ? {} : { body: marker, headers: { 'content-type': 'x/y' } };
      const answer = await tenant.vault.send(method, path, sent);
      assertProblem(answer, 405, 'method_not_allowed');
      assert.equal(answer.headers.get('allow'), allow);
      assert.equal((await tenant.vault.send(method, `${path}/`, sent)).status, 405);
    }
  });

  test('405: TRACE and methods that no path has; 404 on a path that is not there', async () => {
    const tenant = await tenants();
    const known = [
      ['/tokens', 'GET, HEAD, POST'],
      ['/tokens/search', 'POST'],
      ['/tokens/export', 'GET'],
      ['/applications/key', 'GET, HEAD'],
      ['/tokens/some-id', 'DELETE, GET, HEAD, PATCH'],
      ['/docs', 'GET, HEAD'],
    ] as const;
    for (const [path, allow] of known) {
      for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'PUT', 'OPTIONS']) {
        const answer = await tenant.vault.send(method, path);
        assertProblem(answer, 405, 'method_not_allowed');
        assert.equal(answer.headers.get('allow'), allow, `${method} ${path}`);
      }
    }
    for (const method of ['DELETE', 'PUT', 'PATCH']) {
      assert.equal((await tenant.vault.send(method, '/applications/key')).status, 405, method);
    }
    const head = await tenant.vault.send('HEAD', '/sessions/authorize');
    assert.deepEqual([head.status, head.headers.get('allow')], [405, 'POST']);
    for (const method of ['TRACE', 'PROPFIND', 'HEAD']) {
      assert.equal((await tenant.vault.send(method, '/nowhere')).status, 404, method);
    }
  });

  test('405: a method that nobody has heard of', async () => {
    const { url } = (await tenants()).vault;
    const send = async (line: string) => {
      const { socket, answer } = await connectTo(url);
      socket.write(`${line}\r\nhost: x\r\n\r\n`);
      return answer;
    };
    const text = await send(`BREW /tokens?x=${marker} HTTP/1.1`);
    assert.match(text, /^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    assert.match(text, /\r\nallow: GET, HEAD, POST\r\n/);
    assert.match(text, /urn:strongroom:problem:method_not_allowed/);
    assert.equal(text.includes(marker), false);
    for (const line of ['BREW /nowhere HTTP/1.1', 'BREW tokens HTTP/1.1', 'BREW /%zz HTTP/1.1']) {
      assert.match(await send(line), /^HTTP\/1\.1 400 Bad Request\r\n/, line);
    }
  });

  test('what comes behind a request that was read is not taken for its method', async () => {
    const { url } = (await tenants()).vault;
    for (const behind of ['junk', 'FOO / HTTP/1.1\r\nhost: x\r\n\r\n']) {
      const { socket, answer } = await connectTo(url);
      socket.write(`GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n${behind}`);
      assert.doesNotMatch(await answer, /^HTTP\/1\.1 405 /m, behind);
    }
  });

  test('a POST without a body works whatever media type it names', async () => {
    const tenant = await tenants();
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const owner = await tenant.vault.send('GET', '/applications/key', { key: publicKey });
    const routes = [
      ['/sessions', publicKey, 3],
      [`/applications/${owner.body.id}/keys`, tenant.managementKey, 1],
      ['/keys', tenant.managementKey, 3],
    ] as const;
    const types = ['application/json', 'application/x-www-form-urlencoded', 'text/plain'];
    for (const [path, key, times] of routes) {
      for (const type of types.slice(0, times)) {
        const headers = { 'content-type': type, 'content-length': '0' };
        const created = await tenant.send('POST', path, { key, headers });
        assert.equal(created.status, 201, `${path} ${type}: ${created.text}`);
      }
    }
    const chunked = { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' };
    const created = await tenant.send('POST', '/sessions', { key: publicKey, headers: chunked });
    assert.equal(created.status, 201, created.text);
    const filled = { key: publicKey, body: marker, headers: { 'content-type': 'text/plain' } };
    assertProblem(await tenant.send('POST', '/sessions', filled), 415, 'unsupported_media_type');
  });

  test('415: a compressed body, whatever the compression; none at all is accepted', async () => {
    const tenant = await tenants();
    const body = gzipSync(JSON.stringify({ type: 'token', data: marker }));
    for (const encoding of ['gzip', 'br', 'GZIP, deflate', '']) {
      const headers = { ...json, 'content-encoding': encoding };
      const answer = await tenant.send('POST', '/tokens', { body, headers });
      assertProblem(answer, 415, 'unsupported_media_type');
      assert.match(answer.body.detail, /Content-Encoding/);
      assert.equal(answer.headers.get('accept-encoding'), 'identity');
    }
    const lines = { 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' };
    const bulk = await tenant.send('POST', '/tokens/bulk', { body, headers: lines });
    assertProblem(bulk, 415, 'unsupported_media_type');
    assert.deepEqual(await tenant.logged(), []);
    const plain = { ...json, 'content-encoding': 'identity' };
    const sent = { body: { type: 'token', data: 1 }, headers: plain };
    assert.equal((await tenant.send('POST', '/tokens', sent)).status, 201);
  });

  test('413: a body over the limit, not one at the limit', async () => {
    const tenant = await tenants();
    const before = await tenant.counts();
    const head = `{"type":"token","data":"${marker}`;
    const filled = (bytes: number) => `${head.padEnd(bytes - 2, 'x')}"}`;
    const over = await tenant.send('POST', '/tokens', { body: filled(bodyBytesMax + 1) });
    assertProblem(over, 413, 'body_too_large');
    assert.deepEqual(await tenant.counts(), before);
    const at = await tenant.send('POST', '/tokens', { body: filled(bodyBytesMax) });
    assert.equal(at.status, 201);
  });

  test('400: a body that is no JSON, no UTF-8, or no object', async () => {
    const tenant = await tenants();
    const before = await tenant.counts();
    const malformed = [
      `{"type":"token","data":"${marker}"`,
      `{"type":"token","data":"${marker}",}`,
      `{'type':'token','data':'${marker}'}`,
      `{"type":"token","data":NaN,"id":"${marker}"}`,
      `{"type":"token","data":"${marker}\n"}`,
      `\ufeff{"type":"token","data":"${marker}"}`,
      marker,
      Buffer.from(`{"type":"token","data":"${marker}\xff"}`, 'latin1'),
      Buffer.from(`{"type":"token","data":"${marker}"}`, 'utf16le'),
    ];
    for (const body of malformed) {
      const answer = await tenant.send('POST', '/tokens', { body });
      assertProblem(answer, 400, 'malformed_request');
    }
    for (const body of [
      '',
      'null',
      '1',
      `"${marker}"`,
      `["${marker}"]`,
      '['.repeat(9) + ']'.repeat(9),
    ]) {
      const answer = await tenant.send('POST', '/tokens', { body });
      assertProblem(answer, 400, 'validation_failed');
      assert.deepEqual(Object.keys(answer.body.errors), ['body']);
    }
    assert.deepEqual(await tenant.counts(), before);
    assert.equal(JSON.stringify(tenant.vault.logged).includes(marker), false);
  });

  test('415: a body of another media type, and one that names none', async () => {
    const tenant = await tenants();
    const body = `{"type":"token","data":"${marker}"}`;
    const types = ['text/plain', 'application/xml', 'application/merge-patch+json', 'json', ''];
    for (const type of types) {
      const headers = { 'content-type': type };
      const answer = await tenant.send('POST', '/tokens', { body, headers });
      assertProblem(answer, 415, 'unsupported_media_type');
    }
    assertProblem(await tenant.send('POST', '/tokens'), 415, 'unsupported_media_type');
    assert.deepEqual(await tenant.logged(), []);
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    assert.equal((await tenant.send('POST', '/tokens', { body, headers })).status, 201);
  });

  test('400: a path that is not one', async () => {
    const tenant = await tenants();
    for (const path of ['/tokens/%E0%A4%A', '/tokens/%zz', '/%', `/tokens/${'x'.repeat(4801)}`]) {
      const headers = { 'svc-trace-id': 'of-the-caller' };
      const answer = await tenant.send('GET', path, { headers });
      assertProblem(answer, 400, 'malformed_request');
      assert.equal(answer.headers.get('svc-trace-id'), 'of-the-caller');
    }
  });

  test('431: headers over the limit', async () => {
    const tenant = await tenants();
    const answer = await tenant.send('GET', '/ping', {
      headers: { 'x-long': marker.repeat(4000) },
    });
    assertProblem(answer, 431, 'headers_too_large');
    const long = await tenant.send('GET', `/tokens/${marker.repeat(4000)}`);
    assertProblem(long, 431, 'headers_too_large');
    assert.equal(JSON.stringify(tenant.vault.logged).includes(marker), false);
  });

  test('400: bytes that are not HTTP; a connection that is cut causes no error', async () => {
    const tenant = await tenants();
    const noise = await connectTo(tenant.vault.url);
    noise.socket.write(`${marker} ${marker}\r\n\r\n`);
    const text = await noise.answer;
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
    assert.match(text, /\r\ncontent-type: application\/problem\+json; charset=utf-8\r\n/);
    const [, body = ''] = text.split('\r\n\r\n');
    assert.equal(JSON.parse(body).type, 'urn:strongroom:problem:malformed_request');
    assert.equal(text.includes(marker), false);
    const { socket } = await connectTo(tenant.vault.url);
    socket.write('POST /tokens HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{');
    socket.resetAndDestroy();
    await once(socket, 'close');
    assert.equal((await tenant.vault.send('GET', '/ping')).status, 200);
  });

  test('a slash at the end of a path changes nothing', async () => {
    const tenant = await tenants();
    const body = { id: 'own', type: 'token', data: 1 };
    assert.equal((await tenant.send('POST', '/tokens/', { body })).status, 201);
    assert.equal((await tenant.send('GET', '/tokens/own/')).body.data, 1);
    assert.equal((await tenant.send('PATCH', '/tokens/own/', { body: { data: 2 } })).status, 200);
    assert.equal((await tenant.send('DELETE', '/tokens/own/')).status, 204);
  });

  test('a token may have the name of a route', async () => {
    const tenant = await tenants();
    for (const id of ['search', 'tokens', 'healthz']) {
      await tenant.token({ id, type: 'token', data: id });
      assert.equal((await tenant.send('GET', `/tokens/${id}`)).body.data, id);
      assert.equal((await tenant.send('PATCH', `/tokens/${id}`, { body: {} })).status, 200);
      const put = await tenant.send('PUT', `/tokens/${id}`, { body: {} });
      assert.equal(put.status, 405);
      const own = id === 'search' ? 'POST' : 'DELETE, GET, HEAD, PATCH';
      assert.equal(put.headers.get('allow'), own);
      assert.equal((await tenant.send('DELETE', `/tokens/${id}`)).status, 204);
    }
  });

  test('HEAD answers as GET would, without the body, and is logged alike', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'own', type: 'token', data: 1 });
    const head = await tenant.send('HEAD', '/tokens/own');
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.match(head.headers.get('content-length') ?? '', /^[1-9]\d+$/);
    assert.deepEqual(await tenant.logged(), ['create', 'read']);
    assert.equal((await tenant.send('HEAD', '/tokens/none')).status, 404);
    assert.equal((await tenant.vault.send('HEAD', '/tokens/own')).status, 401);
  });

  test('400: an unknown query parameter, or one where a path takes none', async () => {
    const tenant = await tenants();
    const key = tenant.managementKey;
    const answer = await tenant.send('GET', `/logs?colour=${marker}`, { key });
    assertProblem(answer, 400, 'validation_failed');
    assert.deepEqual(answer.body.errors, { colour: ['is not a known attribute'] });
  });

  test('headers nobody knows are ignored, content negotiation included', async () => {
    const tenant = await tenants();
    const headers = {
      ...json,
      accept: 'text/html',
      'x-fern-language': 'JavaScript',
      'bt-device-info': 'e30=',
      'accept-version': '9',
    };
    const body = { type: 'token', data: 1 };
    assert.equal((await tenant.send('POST', '/tokens', { body, headers })).status, 201);
  });
});
