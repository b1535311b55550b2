/** What the client does where things go wrong: it tries again what can succeed, and otherwise says what to do. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import {
  ApiError,
  AuthenticationError,
  apiVersion,
  ConfigurationError,
  ConflictError,
  ConnectionError,
  etagOf,
  NotAVaultError,
  PermissionError,
  RateLimitError,
  type ResponseFacts,
  ServerError,
  Strongroom,
  type StrongroomOptions,
  TimeoutError,
  VersionError,
} from '../../packages/client/src/client.ts';
import { clientOf, clientsOf, interceptedFetch } from '../support/client.ts';
import { engineOf } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const apiKey = 'a.key.that.no.vault.knows.00000000000000';
const tenants = tenantsOf(engineOf('sqlite'));

/** A server that is no vault. */
async function serverOf(t: TestContext, respond: RequestListener): Promise<string> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const problem = (status: number, code: string, headers: Record<string, string> = {}) =>
  Response.json(
    { type: `urn:strongroom:problem:${code}`, title: 'T', status, detail: 'D' },
    { status, headers: { 'content-type': 'application/problem+json', ...headers } },
  );

/** A client whose requests get these responses in turn, and how many it has sent. */
function scripted(
  responses: readonly (() => Response)[],
  options: Partial<StrongroomOptions> = {},
) {
  const sent: Request[] = [];
  const vault = new Strongroom({
    url: 'https://vault.example.com',
    apiKey,
    fetch: async (input, init) => {
      sent.push(new Request(input, init));
      const respond = responses[Math.min(sent.length, responses.length) - 1];
      assert.ok(respond);
      return respond();
    },
    ...options,
  });
  return { vault, sent };
}

const token = () => Response.json({ id: 'found' });

/** What a client waits for is over at once, and recorded. */
function withoutWaiting(t: TestContext): number[] {
  const waits: number[] = [];
  const { setTimeout: real } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (run: () => void, milliseconds = 0) => {
    // The others are time limits, or timers of what else runs in this process.
    const isOfClient = new Error().stack?.includes('packages/client/src/');
    if (!isOfClient || milliseconds >= 10_000) return real(run, milliseconds);
    waits.push(milliseconds);
    return real(run, 0);
  });
  return waits;
}

const never = 9_999_999;

test('what is given at the start is checked, and no message repeats it', () => {
  const right = { url: 'https://vault.example.com', apiKey };
  const wrong: [object, RegExp][] = [
    [{ ...right, url: 'vault.example.com' }, /https:\/\/vault\.example\.com/],
    [{ ...right, url: 'ftp://vault.example.com' }, /scheme/],
    [{ ...right, url: undefined }, /scheme/],
    [{ ...right, url: 'https://user:secret@vault.example.com' }, /no user/],
    [{ ...right, url: 'https://vault.example.com?key=secret' }, /no user, query/],
    [{ ...right, url: 'http://vault.example.com' }, /must be https, because the key is sent/],
    [{ ...right, url: 'http://localhost.example.com', allowHttp: false }, /must be https/],
    [{ ...right, apiKey: undefined }, /apiKey/],
    [{ ...right, apiKey: '' }, /apiKey/],
    [{ ...right, apiKey: 'with a secret\n' }, /apiKey/],
  ];
  for (const [options, message] of wrong) {
    assert.throws(
      () => new Strongroom(options as StrongroomOptions),
      (error: unknown) => {
        assert.ok(error instanceof ConfigurationError);
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  }
  for (const url of ['http://localhost:8080', 'http://127.0.0.1:8080', 'http://[::1]:8080']) {
    assert.ok(new Strongroom({ ...right, url }), 'the key leaves the machine nowhere');
  }
  assert.ok(new Strongroom({ ...right, url: 'http://vault.example.com', allowHttp: true }));
});

test('where nothing listens, the error has the address and says what to check', async (t) => {
  withoutWaiting(t);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const vault = new Strongroom({ url: `http://127.0.0.1:${port}/`, apiKey, timeout: never });
  await assert.rejects(vault.tokens.get('any'), (error: unknown) => {
    assert.ok(error instanceof ConnectionError);
    assert.match(
      error.message,
      /vault at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)\. Check that it runs/,
    );
    return true;
  });
});

test('what is no vault is recognized: a page, a redirect, another service', async (t) => {
  const responses: [number, Record<string, string>, string, RegExp][] = [
    [200, { 'content-type': 'text/html' }, '<html></html>', /address of the vault itself/],
    [200, { 'content-type': 'application/json' }, 'not json', /as no vault does/],
    [404, { 'content-type': 'text/html' }, 'not found', /status 404/],
    [301, { location: 'https://elsewhere.example.com/' }, '', /redirects to another address/],
    [400, { 'content-type': 'application/json' }, '{"error":"bad"}', /status 400/],
  ];
  for (const [status, headers, body, message] of responses) {
    const url = await serverOf(t, (_, response) => {
      response.writeHead(status, headers).end(body);
    });
    const vault = new Strongroom({ url, apiKey });
    await assert.rejects(vault.tokens.list().toArray(), (error: unknown) => {
      assert.ok(error instanceof NotAVaultError, String(error));
      assert.match(error.message, message);
      return true;
    });
  }
});

test('a redirect gets no key', async (t) => {
  let asked = 0;
  const other = await serverOf(t, (_, response) => {
    asked += 1;
    response.end('{}');
  });
  const url = await serverOf(t, (_, response) => {
    response.writeHead(307, { location: other }).end();
  });
  await assert.rejects(new Strongroom({ url, apiKey }).tokens.get('any'), NotAVaultError);
  assert.equal(asked, 0);
});

test('a wrong path in the address is recognized', async () => {
  const tenant = await tenants();
  const vault = clientOf(tenant, { url: `${tenant.vault.url}/api/v1` });
  await assert.rejects(vault.tokens.get('any'), NotAVaultError);
});

test('a vault of another version is recognized where it lacks an operation, and by check', async (t) => {
  const url = await serverOf(t, (request, response) => {
    if (request.url === '/openapi.json') {
      response.end(JSON.stringify({ info: { title: 'Strongroom', version: '0.0.7' } }));
      return;
    }
    const type = 'urn:strongroom:problem:not_found';
    response.writeHead(404, { 'content-type': 'application/problem+json' });
    response.end(
      JSON.stringify({ type, title: 'Not Found', status: 404, detail: 'There is no such route.' }),
    );
  });
  const vault = new Strongroom({ url, apiKey });
  const isOther = (error: unknown) => {
    assert.ok(error instanceof VersionError, String(error));
    assert.equal(error.vaultVersion, '0.0.7');
    assert.match(
      error.message,
      /0\.0\.7.*update the vault, or install @strongroom\/client@0\.0\.7/,
    );
    return true;
  };
  await assert.rejects(vault.tokens.get('any'), isOther);
  await assert.rejects(vault.check(), isOther);
});

test('check says what the client talks to, and that a key is not known', async () => {
  const tenant = await tenants();
  const { version, application } = await clientOf(tenant).check();
  assert.equal(version, apiVersion);
  assert.equal(application.type, 'private');
  await assert.rejects(clientOf(tenant, { apiKey }).check(), (error: unknown) => {
    assert.ok(error instanceof AuthenticationError);
    assert.match(error.message, /apiKey is a whole key of this vault/);
    return true;
  });
});

test('a key of the wrong kind gets an error that names the right kind', async () => {
  const { vault, admin, site } = await clientsOf(await tenants());
  const attempts: [() => Promise<unknown>, RegExp][] = [
    [
      () => vault.applications.create({ name: 'a', type: 'private' }),
      /management key.*a private key/,
    ],
    [() => admin.tokens.get('any'), /private or session key.*a management key/],
    [() => site.tokens.get('any'), /private or session key.*a public key/],
    [() => vault.sessions.create(), /public key.*a private key/],
    [() => site.sessions.authorize({ nonce: 'any' }), /private key.*a public key/],
  ];
  for (const [attempt, message] of attempts) {
    await assert.rejects(attempt, (error: unknown) => {
      assert.ok(error instanceof PermissionError, String(error));
      assert.match(error.message, message);
      return true;
    });
  }
});

test('what can succeed later is sent again, with the same idempotency key, as often as asked', async (t) => {
  const waits = withoutWaiting(t);
  for (const status of [408, 429, 500, 502, 503, 504]) {
    const { vault, sent } = scripted([() => problem(status, 'overloaded'), token]);
    await vault.tokens.create({ type: 'token', data: 1 });
    assert.equal(sent.length, 2, String(status));
    const [first, second] = sent.map(({ headers }) => headers.get('svc-idempotency-key'));
    assert.match(
      first ?? '',
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
    assert.equal(first, second);
  }
  assert.ok(waits.every((wait) => wait >= 375 && wait <= 500));
  waits.length = 0;
  const failing = scripted([() => problem(503, 'unavailable')], { retries: 5 });
  await assert.rejects(failing.vault.tokens.get('any'), ServerError);
  assert.equal(failing.sent.length, 6);
  for (const [at, wait] of waits.entries()) {
    const longest = Math.min(500 * 2 ** at, 8000);
    assert.ok(wait <= longest && wait >= longest * 0.75, `${at}: ${wait}`);
  }
});

test('Retry-After decides when to try again, in seconds or as a date; a long one is given to the caller', async (t) => {
  const waits = withoutWaiting(t);
  const patient = scripted([
    () => problem(429, 'too_many_requests', { 'retry-after': '3' }),
    () => problem(409, 'conflict', { 'retry-after': '1' }),
    token,
  ]);
  await patient.vault.tokens.create({ type: 'token', data: 1 });
  assert.deepEqual(waits, [3000, 1000]);
  waits.length = 0;
  const at = new Date(Date.now() + 5_000).toUTCString();
  await scripted([() => problem(503, 'overloaded', { 'retry-after': at }), token]).vault.tokens.get(
    'a',
  );
  assert.ok((waits[0] ?? 0) >= 3000 && (waits[0] ?? 0) <= 5000);
  const long = scripted([() => problem(429, 'too_many_requests', { 'retry-after': '3600' })]);
  await assert.rejects(long.vault.tokens.get('any'), (error: unknown) => {
    assert.ok(error instanceof RateLimitError);
    assert.equal(error.retryAfter, 3600);
    return true;
  });
  assert.equal(long.sent.length, 1);
});

test('what would fail again is not sent again', async () => {
  const lasting: [number, string][] = [
    [400, 'validation_failed'],
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [409, 'conflict'],
    [422, 'unprocessable'],
    [500, 'integrity'],
    [500, 'reactor_failed'],
    [503, 'reactor_unavailable'],
    [507, 'insufficient_storage'],
  ];
  for (const [status, code] of lasting) {
    const { vault, sent } = scripted([() => problem(status, code)]);
    await assert.rejects(vault.tokens.create({ type: 'token', data: 1 }), (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.status, status);
      assert.equal(error.code, code);
      return true;
    });
    assert.equal(sent.length, 1, code);
  }
  const { vault, sent } = scripted([() => problem(503, 'unavailable')]);
  await assert.rejects(vault.tokens.get('any', { retries: 0 }), ServerError);
  assert.equal(sent.length, 1);
  const conflict = scripted([() => problem(409, 'conflict')]);
  await assert.rejects(conflict.vault.tokens.create({ type: 'token', data: 1 }), ConflictError);
});

test('an attempt ends by the time-out, also while the response is on its way', async (t) => {
  for (const begin of [false, true]) {
    const url = await serverOf(t, (_, response) => {
      if (begin) response.writeHead(200, { 'content-type': 'application/json' }).write('{"id":');
    });
    const vault = new Strongroom({ url, apiKey, retries: 0 });
    await assert.rejects(vault.tokens.get('any', { timeout: 50 }), (error: unknown) => {
      assert.ok(error instanceof TimeoutError);
      assert.equal(error.code, 'timeout');
      assert.match(error.message, /within 50 ms.*option timeout/);
      return true;
    });
  }
});

test('a request without a time-out may take as long as it does', async (t) => {
  const url = await serverOf(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    setImmediate(() => response.end('{"id":"found"}'));
  });
  const vault = new Strongroom({ url, apiKey, timeout: Number.POSITIVE_INFINITY });
  assert.equal((await vault.tokens.get('any')).id, 'found');
});

test('a signal ends a request, the wait for its next attempt, and one that did not begin', async (t) => {
  const hanging = new Strongroom({ url: await serverOf(t, () => undefined), apiKey });
  const reason = new Error('the user left');
  const control = new AbortController();
  const pending = hanging.tokens.get('any', { signal: control.signal });
  control.abort(reason);
  await assert.rejects(pending, reason);
  await assert.rejects(hanging.tokens.get('any', { signal: control.signal }), reason);
  await assert.rejects(hanging.tokens.get('any', { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
  const waiting = new AbortController();
  const { vault, sent } = scripted([
    () => {
      setImmediate(() => waiting.abort(reason));
      return problem(503, 'unavailable', { 'retry-after': '30' });
    },
  ]);
  await assert.rejects(vault.tokens.get('any', { signal: waiting.signal }), reason);
  assert.equal(sent.length, 1);
});

test('a condition without a tag is an error, and nothing is sent', async () => {
  const { vault, sent } = scripted([() => new Response(null, { status: 204 })]);
  for (const ifMatch of [undefined, '', etagOf({})]) {
    await assert.rejects(vault.tokens.delete('any', { ifMatch }), ConfigurationError);
    await assert.rejects(vault.tokens.update('any', {}, { ifMatch }), ConfigurationError);
  }
  assert.equal(sent.length, 0);
  await vault.tokens.delete('any', {});
  assert.equal(sent[0]?.headers.has('if-match'), false);
});

test('a change under the tag of an earlier state is a ConflictError, and changes nothing', async () => {
  const tenant = await tenants();
  const admin = clientOf(tenant, { apiKey: tenant.managementKey });
  const destination_url = 'https://api.example.com';
  const created = await admin.proxies.create({ name: 'first', destination_url });
  const read = await admin.proxies.get(created.id);
  const ifMatch = etagOf(read);
  assert.ok(ifMatch);
  assert.equal(etagOf(created), ifMatch);
  assert.equal(etagOf({ ...read }), undefined, 'a tag belongs to a response');
  const changed = await admin.proxies.update(read.id, { name: 'second' }, { ifMatch });
  assert.deepEqual(changed, {}, 'the vault sends nothing but the tag');
  assert.equal(etagOf(changed), etagOf(await admin.proxies.get(read.id)));
  for (const change of [
    () => admin.proxies.update(read.id, { name: 'third' }, { ifMatch }),
    () => admin.proxies.replace(read.id, { name: 'third', destination_url }, { ifMatch }),
    () => admin.proxies.delete(read.id, { ifMatch }),
  ]) {
    await assert.rejects(
      change(),
      (error) => error instanceof ConflictError && error.code === 'precondition_failed',
    );
  }
  assert.equal((await admin.proxies.get(read.id)).name, 'second');
});

test('each response is reported with its operation, status, trace id and attempt', async (t) => {
  withoutWaiting(t);
  const facts: ResponseFacts[] = [];
  const tenant = await tenants();
  let isFirst = true;
  const vault = clientOf(tenant, {
    timeout: never,
    onResponse: (one) => facts.push(one),
    fetch: interceptedFetch(async (_, send) => {
      if (!isFirst) return send();
      isFirst = false;
      return problem(503, 'unavailable', { 'svc-trace-id': 'first' });
    }),
  });
  const token = await vault.tokens.create({ type: 'token', data: 1 }, { traceId: 'second' });
  const etag = etagOf(token);
  assert.ok(etag);
  const operation = 'createToken';
  assert.deepEqual(facts, [
    { operation, status: 503, traceId: 'first', attempts: 1 },
    { operation, status: 201, traceId: 'second', attempts: 2, etag },
  ]);
});
