/** Whose authority a call of a proxy has, from its first byte to its last, and what the log says of it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
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
});
