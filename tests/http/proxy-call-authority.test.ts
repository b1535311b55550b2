/** Whose authority a call of a proxy has, from its first byte to its last, and what the log says of it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { sendProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { beginRequest } from '../support/raw-request.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer());

const rule = (container: string, permission: string, priority: number) => ({
  container,
  permissions: [permission],
  priority,
  transform: 'redact',
});

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
});
