/** Tokens in calls of proxies: written by their place, permitted one by one, logged before they leave. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { sendProxy } from '../support/proxies.ts';
import { headerOf, proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());
const last = () => {
  const request = destination.requests.at(-1);
  assert.ok(request);
  return request;
};

onBothEngines('Tokens in calls of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  /** A tenant with a token of any text, and a key that may use it and read nothing. */
  async function withToken(data: unknown, more: object = {}) {
    const tenant = await newTenant();
    const { id } = (await tenant.token({ type: 'token', data })).body;
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const proxied = await proxyOf(tenant, { destination_url: url, ...more });
    const call: typeof proxied = Object.assign(
      (...[method, path, sent]: Parameters<typeof proxied>) =>
        proxied(method, path, { key, ...sent }),
      { key: proxied.key, id: proxied.id },
    );
    return { tenant, id: String(id), key, call };
  }

  /** It may read what it uses, so it learns why an expression fails. */
  const readerOf = (tenant: { holder(rule: object): Promise<string> }) =>
    tenant.holder({ permissions: ['proxy:invoke', 'token:read'] });

  test('values are written as JSON, XML, form and text, and in path, query and headers', async () => {
    const value = `a "b" <c>&'d' \\ ü %2e/a..?x=1&y`;
    const { id, call } = await withToken(value);
    const spelled = `{{ ${id} }}`;
    const send = async (type: string, body: string) => {
      const received = await call('POST', '', { body, headers: { 'content-type': type } });
      assert.equal(received.status, 200, received.text);
      return last().body.toString();
    };
    const json = `{"big":12345678901234567890, "v":"${spelled}", "in":"<${spelled}>"}`;
    assert.equal(
      await send('application/json', json),
      `{"big":12345678901234567890, "v":${JSON.stringify(value)}, "in":${JSON.stringify(`<${value}>`)}}`,
    );
    const xml = await send('application/xml', `<a b="${spelled}">${spelled}</a>`);
    assert.ok(xml.includes('>a &quot;b&quot; &lt;c&gt;&amp;'), xml);
    const form = await send(
      'application/x-www-form-urlencoded',
      `x=1&v=${spelled}&w=${encodeURIComponent(spelled)}`,
    );
    assert.deepEqual(
      [...new URLSearchParams(form)],
      [
        ['x', '1'],
        ['v', value],
        ['w', value],
      ],
    );
    assert.equal(await send('text/plain; charset=utf-8', `-${spelled}-`), `-${value}-`);
    const encoded = encodeURIComponent(spelled);
    const received = await call('GET', `/a/${encoded}/b?v=${encoded}&w=1`);
    assert.equal(received.status, 200, received.text);
    const [path = '', query = ''] = last().url.split('?');
    assert.deepEqual(path.split('/').map(decodeURIComponent), ['', 'a', value, 'b']);
    assert.deepEqual(
      [...new URLSearchParams(query)],
      [
        ['v', value],
        ['w', '1'],
      ],
    );
  });

  test('a whole string keeps the type of its value, and a header takes what a header can hold', async () => {
    const { tenant, id, call } = await withToken({
      n: 11,
      list: [1],
      text: 'a\r\nb',
      plain: 'Bearer x',
    });
    const at = (path: string) => `{{ ${id} | json: '$.${path}' }}`;
    const body = { n: at('n'), list: at('list'), text: `m${at('n')}` };
    assert.equal((await call('POST', '', { body })).status, 200);
    assert.deepEqual(JSON.parse(last().body.toString()), { n: 11, list: [1], text: 'm11' });
    assert.equal((await call('GET', '', { headers: { 'x-auth': at('plain') } })).status, 200);
    assert.equal(headerOf(last().headers, 'x-auth'), 'Bearer x');
    const count = destination.requests.length;
    const key = await readerOf(tenant);
    const split = await call('GET', '', { key, headers: { 'x-auth': at('text') } });
    assert.equal(split.status, 400, split.text);
    assert.match(split.body.proxy_error.detail, /header x-auth/);
    assert.doesNotMatch(split.text, /a\\r/);
    assert.equal(destination.requests.length, count);
  });

  test('bytes, packed bodies and proxies with disable_detokenization keep expressions as they are', async () => {
    const { tenant, id, key, call } = await withToken('value');
    const body = `{{ ${id} }}`;
    for (const headers of [
      { 'content-type': 'application/octet-stream' },
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': 'text/plain', 'content-encoding': 'gzip' },
    ] as Record<string, string>[]) {
      assert.equal((await call('POST', '', { body, headers })).status, 200);
      assert.equal(last().body.toString(), body);
    }
    const literal = await proxyOf(tenant, { destination_url: url, disable_detokenization: true });
    const headers = { 'content-type': 'text/plain', 'x-a': body };
    assert.equal((await literal('POST', '', { key, body, headers })).status, 200);
    assert.equal(last().body.toString(), body);
    assert.equal(headerOf(last().headers, 'x-a'), body);
  });

  test('400 names the ids that are unknown, 403 those that may not be used, and nothing is sent', async () => {
    const { tenant, id, call } = await withToken('value');
    const secret = (await tenant.token({ type: 'token', data: 'v', containers: ['/hidden/'] })).body
      .id;
    const rule = {
      container: '/general/',
      permissions: ['proxy:invoke'],
      priority: 1,
      transform: 'mask',
    };
    const key = await tenant.application({ rules: [rule] });
    const count = destination.requests.length;
    const unknown = await call('POST', '', {
      body: { a: `{{ ${id} }}`, b: '{{ no-such-token }}' },
    });
    assert.equal(unknown.status, 400);
    assert.equal(unknown.body.proxy_error.title, 'Invalid proxy request');
    assert.deepEqual(unknown.body.proxy_error.errors, {});
    assert.match(unknown.body.proxy_error.detail, /no-such-token/);
    const hidden = await call('POST', '', { key, body: { a: `{{ ${secret} }}` } });
    assert.equal(hidden.status, 403);
    assert.match(hidden.body.proxy_error.detail, new RegExp(secret));
    const reading = await tenant.application({ permissions: ['token:read', 'token:use'] });
    assert.equal(
      (await call('POST', '', { key: reading, body: { a: `{{ ${id} }}` } })).status,
      200,
    );
    assert.equal(destination.requests.length, count + 1);
    assert.deepEqual(JSON.parse(last().body.toString()), { a: 'value' });
    assert.ok((await tenant.logged()).includes('use denied'));
  });

  test('a call uses at most 100 tokens, or what the quota of the tenant says', async () => {
    const tenant = await newTenant();
    const call = await proxyOf(tenant, { destination_url: url });
    const ids = Array.from({ length: 101 }, (_, index) => `limited-${index}`);
    const data = ids.map((id) => ({ id, type: 'token', data: id }));
    assert.equal((await tenant.send('POST', '/tokenize', { body: data })).status, 200);
    const body = ids.map((id) => `{{ ${id} }}`);
    const most = await call('POST', '', { body: [...body.slice(1), ...body.slice(1)] });
    assert.equal(most.status, 200, most.text);
    assert.equal(JSON.parse(last().body.toString())[0], 'limited-1');
    const more = await call('POST', '', { body });
    assert.equal(more.status, 400);
    assert.match(more.body.proxy_error.detail, /100/);
    await tenant.setQuotas({ proxy_token_limit: 101 });
    assert.equal((await call('POST', '', { body })).status, 200);
  });

  test('an expression that cannot be read or evaluated is a 400 that names its place and no value', async () => {
    const { tenant, id, call } = await withToken('s3cretvalue');
    const key = await readerOf(tenant);
    const count = destination.requests.length;
    for (const [body, headers] of [
      [{ a: '{{ ' }, {}],
      [{ a: `{{ ${id} | nosuch }}` }, {}],
      [{ a: `{{ ${id} | json: '$.x' | divided_by: 0 }}` }, {}],
      [{ a: '{{ config: MISSING }}' }, {}],
      [{ a: '{{ res.x }}' }, {}],
      [{}, { 'x-a': '{{ proxy.request.headers.Missing }}' }],
    ] as [object, Record<string, string>][]) {
      const received = await call('POST', '', { key, body, headers });
      assert.equal(received.status, 400, JSON.stringify(body));
      assert.match(received.body.proxy_error.detail, /body|x-a/);
      assert.doesNotMatch(received.text, /s3cret/);
    }
    assert.equal(destination.requests.length, count);
    assert.ok((await tenant.logged()).includes('use failed'));
    const headers = { 'content-type': 'text/plain; charset=utf-16' };
    assert.equal((await call('POST', '', { body: `{{ ${id} }}`, headers })).status, 400);
  });

  test('configuration, headers and the body that is sent serve to sign a request', async () => {
    const { id, call } = await withToken('value', {
      configuration: { SECRET: 'signing', KEY: 'k' },
    });
    const sign =
      '{{ proxy.request.body | append: proxy.request.headers.X-Date ' +
      "| hmac: 'sha-256', proxy.config.SECRET | to_base16 }}";
    const received = await call('POST', '', {
      body: { a: `{{ ${id} }}`, key: '{{ config: KEY }}' },
      headers: { 'X-Date': '2026', 'X-Signature': sign },
    });
    assert.equal(received.status, 200, received.text);
    const sent = last();
    assert.equal(sent.body.toString(), '{"a":"value","key":"k"}');
    const { createHmac } = await import('node:crypto');
    const expected = createHmac('sha256', 'signing').update(`${sent.body}2026`).digest('hex');
    assert.equal(headerOf(sent.headers, 'x-signature')?.toLowerCase(), expected);
  });

  test('calls without a key act with the rules of the application of the proxy', async () => {
    const { tenant, id } = await withToken('value');
    const made = await tenant.vault.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'inbound', type: 'private', permissions: ['token:use'] },
    });
    const given = { require_auth: false, destination_url: url };
    const application = { id: made.body.id };
    const call = await proxyOf(tenant, { ...given, application });
    const send = (one: typeof call, key?: string) =>
      tenant.vault.send('POST', '/proxy', {
        ...(key !== undefined && { key }),
        body: { a: `{{ ${id} }}` },
        headers: { 'svc-proxy-key': one.key },
      });
    assert.equal((await send(call)).status, 200);
    assert.equal(last().body.toString(), '{"a":"value"}');
    const used = (await tenant.rows('logs')).filter(({ operation }) => operation === 'use');
    const anonymous = used.filter(({ actor_type }) => actor_type === 'anonymous');
    assert.deepEqual(
      anonymous.map(({ actor_id, entity_id }) => [actor_id, entity_id]),
      [[null, id]],
    );
    // A key that is sent all the same changes nothing.
    const powerless = await proxyOf(tenant, given);
    assert.equal((await send(powerless, tenant.key)).status, 403);
    assert.equal((await send(powerless)).status, 403);
    await tenant.vault.send('DELETE', `/applications/${application.id}`, {
      key: tenant.managementKey,
    });
    tenant.vault.clock.advance(1_001);
    assert.equal((await send(call)).status, 403);
    const plain = { headers: { 'svc-proxy-key': call.key } };
    assert.equal((await tenant.vault.send('GET', '/proxy', plain)).status, 200);
  });

  test('entries of the tokens are committed before anything leaves, and one of the call after it', async () => {
    const { tenant, id, call } = await withToken('value');
    const before: string[] = [];
    destination.behave(async ({ response, received }) => {
      await received;
      before.push(...(await tenant.rows('logs')).map(({ message }) => message));
      response.end();
    });
    const headers = { 'svc-trace-id': 'traced-call' };
    assert.equal(
      (await call('POST', '/path', { body: { a: `{{ ${id} }}` }, headers })).status,
      200,
    );
    destination.behave(answer());
    const host = new URL(url).host;
    const use = `Token used in a proxy call: POST to ${host}, proxy ${call.id}`;
    assert.ok(before.includes(use), before.join('\n'));
    assert.ok(!before.some((message) => message.startsWith('Proxy invoked')));
    const logs = (await tenant.rows('logs')).filter(
      ({ trace_id, entity_type }) =>
        trace_id === 'traced-call' && entity_type !== 'application_key',
    );
    const about = logs.map(({ entity_type, entity_id, operation }) => [
      entity_type,
      entity_id,
      operation,
    ]);
    assert.deepEqual(about.sort(), [
      ['proxy', call.id, 'invoke'],
      ['token', id, 'use'],
    ]);
    const invoked = logs.find(({ entity_type }) => entity_type === 'proxy')?.message ?? '';
    assert.match(invoked, /^Proxy invoked: POST, the destination responded with 200 after \d+ ms$/);
  });

  test('a browser encrypts, a backend passes on, and the destination receives the value', async () => {
    const { tenant, call } = await withToken('unused');
    const pair = await tenant.vault.send('POST', '/keys', {
      key: tenant.managementKey,
      body: { algorithm: 'RSA-OAEP-256' },
    });
    assert.equal(pair.status, 201, pair.text);
    const { importSPKI, CompactEncrypt } = await import('jose');
    const publicKey = await importSPKI(pair.body.public_key_pem, 'RSA-OAEP-256');
    const header = { alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: pair.body.id };
    const encrypted = await new CompactEncrypt(Buffer.from(JSON.stringify(visa)))
      .setProtectedHeader(header)
      .encrypt(publicKey);
    const encode = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64');
    const one = { type: 'card', encrypted };
    for (const [given, path] of [
      [one, '$.data.number'],
      [{ mine: one }, '$.mine.data.number'],
    ] as const) {
      const body = { number: `{{ encrypted | json: '${path}' }}` };
      const received = await call('POST', '', {
        body,
        headers: { 'svc-encrypted': encode(given) },
      });
      assert.equal(received.status, 200, received.text);
      assert.deepEqual(JSON.parse(last().body.toString()), { number: visa.number });
    }
    const body = { number: '{{ encrypted }}' };
    for (const wrong of [
      'x',
      encode([]),
      encode({ a: 1 }),
      encode({ type: 'card', encrypted: 'x' }),
    ]) {
      const received = await call('POST', '', { body, headers: { 'svc-encrypted': wrong } });
      assert.equal(received.status, 400, received.text);
      assert.match(received.text, /svc-encrypted/);
    }
  });

  test('a changed proxy is called as it is now', async () => {
    const { tenant, call } = await withToken('value');
    assert.equal((await call('GET', '/x')).status, 200);
    const patch = { destination_url: `${url}/moved` };
    assert.equal((await sendProxy(tenant, 'PATCH', `/${call.id}`, { body: patch })).status, 204);
    assert.equal((await call('GET', '/x')).status, 200);
    assert.equal(last().url, '/moved/x');
  });
});
