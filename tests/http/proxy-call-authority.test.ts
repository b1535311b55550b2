/** Whose authority a call of a proxy has, from its first byte to its last, and what the log says of it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { sendProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { beginRequest } from '../support/raw-request.ts';
import { having } from '../support/sql.ts';
import { newTenant as newTenantOf, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

const rule = (container: string, permission: string, priority: number) => ({
  container,
  permissions: [permission],
  priority,
  transform: 'redact',
});

/** What the log says was altered outside the vault. */
async function alertsOf(tenant: TestTenant): Promise<readonly string[]> {
  const alerts = (await tenant.rows('logs')).filter(({ message }) => message.includes('altered'));
  return alerts.map(({ entity_type, entity_id }) => `${entity_type} ${entity_id}`);
}

onBothEngines('Authority of calls of proxies', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('token:use sends a token through a proxy that was set up, and to no host that the caller names', async () => {
    const tenant = await newTenant();
    for (const container of ['/invoke/', '/use/']) {
      const id = `in-${container.slice(1, -1)}`;
      await tenant.token({ id, type: 'token', data: id, containers: [container] });
    }
    const rules = [rule('/invoke/', 'proxy:invoke', 1), rule('/use/', 'token:use', 2)];
    const key = await tenant.application({ rules });
    const call = await proxyOf(tenant, { destination_url: url });
    const describe = (id: string) =>
      tenant.send('POST', '/proxy', {
        key,
        headers: { 'svc-proxy-url': url },
        body: { a: `{{ ${id} }}` },
      });
    for (const id of ['in-invoke', 'in-use']) {
      const body = { a: `{{ ${id} }}` };
      assert.equal((await call('POST', '', { key, body })).status, 200, id);
    }
    assert.equal((await describe('in-invoke')).status, 200);
    const count = destination.requests.length;
    const refused = await describe('in-use');
    assert.equal(refused.status, 403, refused.text);
    assert.match(
      refused.body.proxy_error.detail,
      /permission proxy:invoke for these tokens: in-use/,
    );
    assert.equal(destination.requests.length, count);
  });

  test('a proxy that changes while a body arrives lets through what it allows then', async () => {
    for (const change of [
      { allowed_methods: ['GET'] },
      { allowed_paths: ['/elsewhere'] },
      { destination_url: 'https://elsewhere.example.com' },
    ]) {
      const tenant = await newTenant();
      await tenant.set({ proxy_destinations: 'local*' });
      const call = await proxyOf(tenant, { destination_url: url });
      const sent = '{"a":1}';
      const begun = await beginRequest({
        url: tenant.vault.url,
        method: 'POST',
        path: '/proxy/charges',
        headers: {
          'svc-api-key': tenant.key,
          'svc-proxy-key': call.key,
          connection: 'close',
        },
        length: sent.length,
      });
      assert.equal((await sendProxy(tenant, 'PATCH', `/${call.id}`, { body: change })).status, 204);
      tenant.vault.clock.advance(1001);
      const count = destination.requests.length;
      begun.socket.write(sent);
      assert.match(await begun.answer, /HTTP\/1\.1 403 /, JSON.stringify(change));
      assert.equal(destination.requests.length, count);
    }
  });

  test('what was altered outside the vault is named in the log where a call meets it', async () => {
    const tenant = await newTenant();
    await tenant.token({ id: 'moved', type: 'token', data: 'value', containers: ['/a/'] });
    const made = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'inbound', type: 'private', permissions: ['token:use'] },
    });
    const application = { id: made.body.id };
    const open = { destination_url: url, require_auth: false, application };
    const [call, anonymous] = [
      await proxyOf(tenant, { destination_url: url }),
      await proxyOf(tenant, open),
    ];
    const alter = async (table: 'tokens' | 'applications', sets: string, key: object) => {
      const where = having(engine, table, { tenant_id: tenant.id, ...key });
      await engine.run(tenant.vault.place, `update ${table} set ${sets} where ${where}`);
      tenant.vault.clock.advance(4000);
    };
    const count = destination.requests.length;
    await alter('tokens', "container = '/b/'", { token_id: 'moved' });
    const body = { a: '{{ moved }}' };
    assert.equal((await call('POST', '', { body })).status, 500);
    assert.deepEqual(await alertsOf(tenant), ['token moved']);
    await alter('applications', "name = 'altered'", { application_id: application.id });
    assert.equal((await anonymous('POST', '', { body: { a: 1 } })).status, 500);
    assert.deepEqual(await alertsOf(tenant), ['token moved', `application ${application.id}`]);
    assert.equal(destination.requests.length, count);
  });

  test('409, and not "nothing was done", where the outcome of a call cannot be stored', {
    skip: engine.name === 'sqlite' && 'the embedded engine does not go away alone',
  }, async (t) => {
    const vault = await startVault(t, engine, { environment });
    const tenant = await newTenantOf(vault);
    const call = await proxyOf(tenant, { destination_url: url });
    const count = destination.requests.length;
    destination.behave(async (exchange) => {
      await vault.running.vault.store.close();
      return answer()(exchange);
    });
    t.after(() => destination.behave(answer()));
    const received = await call('POST', '', { body: {} });
    assert.equal(received.status, 409, received.text);
    assert.equal(received.headers.get('retry-after'), null);
    assert.match(received.text, /The call was made/);
    assert.equal(destination.requests.length, count + 1);
  });

  test('an expression that fails on the configuration gives null, and is in the log', async () => {
    const tenant = await newTenant();
    const configuration = { SECRET: 'sk_live_1' };
    const call = await proxyOf(tenant, { destination_url: url, configuration });
    const key = await tenant.application({ permissions: ['proxy:invoke'] });
    const count = destination.requests.length;
    const guess = "{{ config: SECRET | slice: 0 | replace: 'a', '0' | to_number }}";
    const received = await call('POST', '', { key, body: { guess } });
    assert.equal(received.status, 200);
    assert.equal(destination.requests.length, count + 1);
    assert.deepEqual(JSON.parse(String(destination.requests.at(-1)?.body)), { guess: null });
    const failed = (await tenant.rows('logs')).filter(({ result }) => result === 'failed');
    assert.deepEqual(
      failed.map(({ entity_type, entity_id, operation }) => [entity_type, entity_id, operation]),
      [['proxy', call.id, 'invoke']],
    );
  });

  test('a mask meets no text that it cannot read, whatever the caller asks the destination for', async () => {
    const tenant = await newTenant();
    const mask = {
      type: 'mask',
      matcher: 'regex',
      expression: 'number=([0-9]+)',
      replacement: '*',
    };
    const call = await proxyOf(tenant, { destination_url: url, response_transforms: [mask] });
    const text = 'number=4242424242424242';
    destination.behave(answer(200, [], text));
    assert.equal((await call('GET', '', { headers: { 'accept-charset': 'utf-16' } })).status, 200);
    const { headers } = destination.requests.at(-1) ?? { headers: [] };
    assert.ok(!headers.some((name) => name.toLowerCase() === 'accept-charset'));
    for (const [type, body] of [
      ['text/plain', Buffer.from(text, 'utf16le')],
      ['text/plain', Buffer.from(text, 'utf16le').swap16()],
      ['text/plain; charset=utf-7', Buffer.from(text)],
      ['text/plain; charset="UTF-16"', Buffer.from(text)],
    ] as const) {
      destination.behave(answer(200, ['Content-Type', type], body));
      const received = await call('GET', '');
      assert.equal(received.status, 502, received.text);
      assert.match(received.body.proxy_error.detail, /not text in UTF-8/);
    }
    for (const type of ['text/plain; charset=UTF-8', 'text/plain; charset="us-ascii"']) {
      destination.behave(answer(200, ['Content-Type', type], text));
      assert.match((await call('GET', '')).text, /number=\*{16}$/);
    }
    destination.behave(answer());
  });

  test('502: a token that a response does not become, and nothing of the response, not even names in it', async () => {
    const tenant = await newTenant();
    const rules = [
      {
        container: '/a/',
        permissions: ['token:create', 'proxy:invoke'],
        priority: 1,
        transform: 'redact',
      },
    ];
    const key = await tenant.application({ rules });
    const name = '4242424242424242';
    const type = ['Content-Type', 'application/json'];
    destination.behave(answer(200, type, JSON.stringify({ v: 1, meta: { [name]: 5 } })));
    for (const [token, errors] of [
      [{ containers: ['/b/'] }, undefined],
      [{ containers: ['/a/'], metadata: '{{ res.meta }}' }, { metadata: ['must be a string'] }],
    ] as const) {
      const options = { identifier: 'x', token: { type: 'token', data: '{{ res.v }}', ...token } };
      const response_transforms = [{ type: 'tokenize', options }];
      const call = await proxyOf(tenant, { destination_url: url, response_transforms });
      const received = await call('GET', '', { key });
      assert.equal(received.status, 502, received.text);
      assert.ok(!received.text.includes(name), received.text);
      assert.match(received.body.proxy_error.detail, /^The destination responded/);
      assert.deepEqual(received.body.proxy_error.errors, errors);
    }
    destination.behave(answer());
    assert.deepEqual(await tenant.rows('tokens'), []);
    assert.deepEqual(await tenant.logged(), ['create denied']);
  });
});
