/** What events say, type by type: who and what, never the data of a token. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer, raw } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { bulk } from '../support/lines.ts';
import { createProxy, destination, leastProxy, sendProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker, sendReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { revealEverything } from '../support/vault.ts';
import { createWebhook, eventsOf, newestOf, wholeWebhook } from '../support/webhooks.ts';

const hour = 3_600_000;
const secret = 'never in an event';

const { destination: called, url, environment } = await startCalled({ after });

const typesOf = async (tenant: TestTenant, entity: string) =>
  (await eventsOf(tenant)).filter(({ entity_id }) => entity_id === entity).map(({ type }) => type);

onBothEngines('an event', (engine) => {
  const tenants = tenantsOf(engine, { environment });
  const newTenant = async () => {
    const tenant = await tenants();
    await createWebhook(tenant, wholeWebhook);
    return tenant;
  };

  test('of a token that is made, changed, read and deleted', async () => {
    const tenant = await newTenant();
    const { body } = await tenant.token({
      id: 'own',
      type: 'token',
      data: secret,
      mask: `${secret} {{ data | last4 }}`,
      metadata: { order: '4711' },
      containers: ['/a/'],
      search_indexes: ['{{ data }}'],
      fingerprint_expression: '{{ data }}',
      expires_at: '2040-08-26T19:23:57-07:00',
    });
    const { created_by, created_at, fingerprint } = body;
    const made = {
      id: 'own',
      type: 'token',
      metadata: { order: '4711' },
      containers: ['/a/'],
      fingerprint,
      fingerprint_expression: '{{ data }}',
      search_indexes: ['{{ data }}'],
      expires_at: '2040-08-26T19:23:57-07:00',
      created_by,
      created_at,
    };
    const created = (await eventsOf(tenant)).at(-1);
    assert.deepEqual(created?.body.data, { token: made });
    assert.deepEqual(created?.body.actor, { id: created_by, type: 'application' });
    const patch = { data: `${secret} either`, metadata: { order: '4712' }, search_indexes: [] };
    const sent = { body: patch, headers: { 'svc-trace-id': 'a-trace' } };
    const patched = (await tenant.send('PATCH', '/tokens/own', sent)).body;
    const { search_indexes: _none, ...others } = made;
    const { modified_by, modified_at } = patched;
    assert.deepEqual(await newestOf(tenant, 'token.updated'), {
      token: {
        ...others,
        metadata: patch.metadata,
        fingerprint: patched.fingerprint,
        modified_by,
        modified_at,
      },
    });
    assert.equal((await eventsOf(tenant)).at(-1)?.body.trace_id, 'a-trace');
    await tenant.send('GET', '/tokens/own');
    await tenant.send('DELETE', '/tokens/own');
    assert.deepEqual(await newestOf(tenant, 'token.read'), { token: { id: 'own', type: 'token' } });
    assert.deepEqual(await newestOf(tenant, 'token.deleted'), { token: { id: 'own' } });
    assert.deepEqual(await typesOf(tenant, 'own'), [
      'token.created',
      'token.updated',
      'token.read',
      'token.deleted',
    ]);
    assert.equal(JSON.stringify(await eventsOf(tenant)).includes(secret), false);
  });

  test('of a read says the type, through whatever the token was read', async () => {
    const tenant = await newTenant();
    await tenant.set({ deduplicate_tokens: 'true' });
    const line = { id: 'own', type: 'token', data: secret, search_indexes: ['{{ data }}'] };
    await tenant.token(line);
    const headers = { 'svc-idempotency-key': 'a key that is long enough' };
    const ways: readonly (() => Promise<unknown>)[] = [
      () => tenant.send('GET', '/tokens/own'),
      () => tenant.send('GET', '/v2/tokens'),
      () => tenant.send('GET', '/tokens/export'),
      () => tenant.send('POST', '/v2/tokens/search', { body: { query: `data:"${secret}"` } }),
      () => tenant.send('POST', '/detokenize', { body: ['{{ own }}'], headers }),
      () => tenant.send('POST', '/detokenize', { body: ['{{ own }}'], headers }),
      () => bulk(tenant, [line]),
      () => tenant.send('POST', '/tokens', { body: { type: 'token', data: secret } }),
    ];
    for (const [index, read] of ways.entries()) {
      await read();
      const reads = (await eventsOf(tenant)).filter(({ type }) => type === 'token.read');
      assert.equal(reads.length, index + 1, String(index));
      for (const { body } of reads)
        assert.deepEqual(body.data, { token: { id: 'own', type: 'token' } });
    }
  });

  test('of an expiry, before that of the token which takes its id', async () => {
    const tenant = await newTenant();
    const { clock } = tenant.vault;
    const expires_at = new Date(clock.now() + hour).toISOString();
    await tenant.token({ id: 'again', type: 'token', data: 1, expires_at });
    clock.advance(hour + 1);
    await tenant.token({ id: 'again', type: 'token', data: 2 });
    assert.deepEqual(await typesOf(tenant, 'again'), [
      'token.created',
      'token.expired',
      'token.created',
    ]);
    const soon = new Date(clock.now() + hour).toISOString();
    await tenant.token({ id: 'gone', type: 'token', data: 3, expires_at: soon });
    const { body: card } = await tenant.token({ type: 'card', data: visa });
    clock.advance(2 * hour);
    await runJob(tenant.vault, 'expire tokens');
    await runJob(tenant.vault, 'expire card codes');
    assert.deepEqual(await newestOf(tenant, 'token.expired'), { token: { id: 'gone' } });
    const property = { token: { id: card.id, property_name: 'cvc' } };
    assert.deepEqual(await newestOf(tenant, 'token.property.expired'), property);
    const event = (await eventsOf(tenant)).at(-1);
    assert.deepEqual([event?.body.actor, event?.body.trace_id], [{ type: 'system' }, null]);
  });

  test('of an intent that is made, deleted, and becomes a token', async () => {
    const tenant = await newTenant();
    const permissions = ['token-intent:create', 'token-intent:delete'];
    const key = await tenant.application({ permissions, rules: [] });
    const body = { type: 'card', data: visa };
    const create = async () => (await tenant.send('POST', '/token-intents', { key, body })).body;
    const first = await create();
    const { id, type, fingerprint, created_by, created_at, expires_at } = first;
    assert.deepEqual(await newestOf(tenant, 'token-intent.created'), {
      token_intent: { id, type, fingerprint, created_by, created_at, expires_at },
    });
    await tenant.send('DELETE', `/token-intents/${id}`, { key });
    assert.deepEqual(await newestOf(tenant, 'token-intent.deleted'), { token_intent: { id } });
    const intents = [await create(), await create()];
    const lines = intents.map((one) => ({ token_intent_id: one.id }));
    const made = await tenant.send('POST', '/tokenize', { body: lines });
    const converted = (await eventsOf(tenant)).filter(
      (one) => one.type === 'token-intent.converted',
    );
    assert.deepEqual(
      converted.map((one) => one.body.data),
      intents.map((intent, index) => ({
        token_intent: { id: intent.id, type: 'card' },
        token: { id: made.body[index].id, type: 'card' },
      })),
    );
  });

  test('of an application, its keys, a session and the tenant', async () => {
    const tenant = await newTenant();
    const manage = (method: string, path: string, body?: unknown) =>
      tenant.send(method, path, { key: tenant.managementKey, body });
    const request = { name: 'one', type: 'public', permissions: ['token:create'] };
    const { body } = await manage('POST', '/applications', request);
    const { id, keys, key } = body;
    const { created_by, created_at } = body;
    const application = { id, ...request, rules: [], created_by, created_at };
    assert.deepEqual(await newestOf(tenant, 'application.created'), { application });
    const [own] = keys;
    assert.deepEqual(await newestOf(tenant, 'application.key.created'), {
      application_key: {
        id: own.id,
        application_id: id,
        version: 1,
        created_by: own.created_by,
        created_at: own.created_at,
      },
    });
    const session = (await tenant.send('POST', '/sessions', { key })).body;
    const made = (await newestOf(tenant, 'session.created'))['session'] as Record<string, unknown>;
    assert.deepEqual(
      [made['created_by'], made['expires_at'], made['issued_to_application']],
      [id, session.expires_at, { id }],
    );
    const granted = { nonce: session.nonce, permissions: ['token:create'] };
    assert.equal((await tenant.send('POST', '/sessions/authorize', { body: granted })).status, 200);
    const authorized = (await newestOf(tenant, 'session.authorized'))['session'];
    assert.deepEqual(authorized, { ...made, permissions: ['token:create'], rules: [] });
    const renamed = { name: 'two', permissions: ['token:create'] };
    const { modified_by, modified_at } = (await manage('PUT', `/applications/${id}`, renamed)).body;
    assert.deepEqual(await newestOf(tenant, 'application.updated'), {
      application: { ...application, name: 'two', modified_by, modified_at },
    });
    await manage('DELETE', `/applications/${id}`);
    assert.deepEqual(await newestOf(tenant, 'application.deleted'), { application: { id } });
    assert.deepEqual(await newestOf(tenant, 'application.key.deleted'), {
      application_key: { id: own.id, application_id: id },
    });
    await manage('PUT', '/tenants/self', { name: 'own name' });
    const updated = (await newestOf(tenant, 'tenant.updated'))['tenant'] as Record<string, unknown>;
    assert.deepEqual([updated['id'], updated['name']], [tenant.id, 'own name']);
    const text = JSON.stringify(await eventsOf(tenant));
    for (const hidden of [key, session.session_key, session.nonce, 'key_hash', 'keyring']) {
      assert.equal(text.includes(hidden), false);
    }
  });

  test('of a call says what came of it, and nothing of what was sent', async () => {
    const tenant = await newTenant();
    await tenant.token({ id: 'own', type: 'token', data: secret });
    const rules = [{ ...revealEverything, permissions: ['token:read', 'proxy:invoke'] }];
    const key = await tenant.application({ rules });
    const call = await proxyOf(tenant, {
      destination_url: `${url}/${secret.replaceAll(' ', '-')}`,
    });
    const send = () =>
      call('POST', '/path?query={{ own }}', {
        key,
        body: { value: '{{ own }}' },
        headers: { 'x-own': secret },
      });
    called.behave(answer(402, ['X-Theirs', secret], secret));
    assert.equal((await send()).status, 402);
    const invoked = async () => {
      const { proxy, destination: to } = (await newestOf(tenant, 'proxy.invoked')) as Record<
        string,
        // biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever is there
        any
      >;
      assert.deepEqual([proxy.id, proxy.response], [call.id, to.response]);
      assert.deepEqual(to.request, { method: 'POST', host: new URL(url).host });
      assert.ok(Number.isInteger(proxy.response.elapsed_ms));
      return proxy.response;
    };
    assert.equal((await invoked()).status, 402);
    called.behave(raw('no response', 'end'));
    assert.ok((await send()).status >= 500);
    const failed = await invoked();
    assert.deepEqual([failed.status, typeof failed.error], [undefined, 'string']);
    const text = JSON.stringify(await eventsOf(tenant)).replaceAll(
      /"destination_url":"[^"]*"/g,
      '',
    );
    for (const hidden of [secret, secret.replaceAll(' ', '-'), call.key, 'x-own', 'query']) {
      assert.equal(text.toLowerCase().includes(hidden), false, hidden);
    }
  });

  test('of a reactor and its calls says neither code nor what it was given', async () => {
    const tenant = await newTenant();
    const code = `module.exports = function (req) {
      if (req.args.fails) throw new Error('${secret}');
      return { raw: '${secret}' };
    }`;
    const made = await createReactor(tenant, { code, configuration: { KEY: secret } });
    const { id, name, created_by, created_at } = made;
    const created = { reactor: { id, name, created_by, created_at } };
    assert.deepEqual(await newestOf(tenant, 'reactor.created'), created);
    const key = await invoker(tenant);
    for (const fails of [false, true]) {
      await tenant.send('POST', `/reactors/${id}/react`, {
        key,
        body: { args: { fails, secret } },
      });
    }
    const invoked = { reactor: { id, name }, request: { invocation_type: 'sync' } };
    assert.deepEqual(await newestOf(tenant, 'reactor.invoked'), invoked);
    const completed = await newestOf(tenant, 'reactor.completed');
    assert.deepEqual(completed, { ...invoked, elapsed_ms: completed['elapsed_ms'] });
    const { error, elapsed_ms, ...failed } = await newestOf(tenant, 'reactor.failed');
    assert.deepEqual([failed, typeof error, typeof elapsed_ms], [invoked, 'string', 'number']);
    await sendReactor(tenant, 'DELETE', `/${id}`);
    assert.deepEqual(await newestOf(tenant, 'reactor.deleted'), { reactor: { id } });
    assert.equal(JSON.stringify(await eventsOf(tenant)).includes(secret), false);
  });

  test('of a proxy says where it leads, and nothing of its key and configuration', async () => {
    const tenant = await newTenant();
    const proxy = await createProxy(tenant, {
      configuration: { API_KEY: secret },
      request_transforms: [],
    });
    const { id, created_by, created_at, key } = proxy;
    const shown = {
      id,
      name: leastProxy['name'],
      timeout: 25,
      destination_url: destination,
      require_authentication: true,
      created_by,
      created_at,
    };
    assert.deepEqual(await newestOf(tenant, 'proxy.created'), { proxy: shown });
    await tenant.giveHosts(`${tenant.id}.example.com`);
    const body = { ...leastProxy, name: 'other', proxy_host: `${tenant.id}.example.com` };
    const { modified_by, modified_at } = (await sendProxy(tenant, 'PUT', `/${id}`, { body })).body;
    assert.deepEqual(await newestOf(tenant, 'proxy.updated'), {
      proxy: {
        ...shown,
        name: 'other',
        proxy_host: `${tenant.id}.example.com`,
        modified_by,
        modified_at,
      },
    });
    await sendProxy(tenant, 'DELETE', `/${id}`);
    assert.deepEqual(await newestOf(tenant, 'proxy.deleted'), { proxy: { id } });
    const text = JSON.stringify(await eventsOf(tenant));
    for (const hidden of [secret, key]) assert.equal(text.includes(hidden), false);
  });
});
