/** Calls of other hosts that are under way when their key ends: nothing that came of them is given or stored. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { createReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('a call that is under way when its key ends', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  /** A key, and what deletes it. */
  async function keyToEnd(tenant: TestTenant) {
    const made = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: {
        name: 'a',
        type: 'private',
        permissions: ['proxy:invoke', 'reactor:invoke', 'token:create'],
      },
    });
    const { id, key, keys } = made.body;
    const path = `/applications/${id}/keys/${keys[0].id}`;
    const end = async () => {
      const deleted = await tenant.send('DELETE', path, { key: tenant.managementKey });
      assert.equal(deleted.status, 204, deleted.text);
    };
    return { key, end };
  }

  test('401: what a destination answers later is not given, and the log says so', async () => {
    const tenant = await newTenant();
    const { key, end } = await keyToEnd(tenant);
    const call = await proxyOf(tenant, { destination_url: url });
    destination.behave(async ({ response }) => {
      await end();
      response.end('what only the caller may see');
    });
    const called = await call('GET', '/', { key });
    assert.equal(called.status, 401, called.text);
    assert.doesNotMatch(called.text, /may see/);
    const messages = (await tenant.rows('logs')).map(({ message }) => message);
    assert.ok(messages.some((one) => one.includes('its key ended while another host was called')));
  });

  test('a response that is being passed on is cut off', async () => {
    const tenant = await newTenant();
    const { key, end } = await keyToEnd(tenant);
    const call = await proxyOf(tenant, { destination_url: url });
    const cut = Promise.withResolvers<void>();
    destination.behave(async ({ response }) => {
      response.once('close', cut.resolve);
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('first');
      await end();
    });
    // Either before its head was passed on, or after.
    const called = await call('GET', '/', { key }).catch(() => undefined);
    assert.ok(called === undefined || called.status === 401, called?.text ?? 'cut off');
    await cut.promise;
  });

  test('401: code of a reactor asks for nothing more, and its result is not given', async () => {
    const tenant = await newTenant();
    const { key, end } = await keyToEnd(tenant);
    let requests = 0;
    destination.behave(async ({ response }) => {
      requests += 1;
      await end();
      response.end();
    });
    const code = `module.exports = async ({ args }) => {
      await fetch(args.url); await fetch(args.url).catch(() => {}); return { tokenize: 'made' } }`;
    const { id } = await createReactor(tenant, { code });
    const sent = { key, body: { args: { url } } };
    const called = await tenant.send('POST', `/reactors/${id}/react`, sent);
    assert.equal(called.status, 401, called.text);
    assert.equal(requests, 1);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });
});
