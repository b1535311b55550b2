/** Code that is under way when its reactor, what that was lent, or its tenant is taken away. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, invoker, sendReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

/** Sends a request, and then tells what came of a second one and of reading a token. */
const code = `module.exports = async ({ args: { id, url }, bt }) => {
  const outcome = (asking) => asking().then(() => 'done', (error) => error.message);
  await fetch(url + '/first');
  return { raw: { fetched: await outcome(() => fetch(url + '/second')),
    read: await outcome(() => bt.tokens.retrieve(id)) } } }`;

/** Calls the reactor, and does what is given before the first request of its code is answered. */
async function calledWhile(
  tenant: TestTenant,
  withdraw: (reactor: string) => Promise<{ readonly status: number }>,
) {
  const { body: token } = await tenant.token({ type: 'token', data: 'secret' });
  const linked = await tenant.send('POST', '/applications', {
    key: tenant.managementKey,
    body: { name: 'linked', type: 'private', permissions: ['token:read'] },
  });
  const { id } = await createReactor(tenant, { code, application: { id: linked.body.id } });
  const key = await invoker(tenant);
  destination.behave(async ({ request, response }) => {
    if (request.url === '/first') assert.equal((await withdraw(id)).status, 204);
    response.end();
  });
  const body = { args: { id: token.id, url } };
  return tenant.send('POST', `/reactors/${id}/react`, { key, body });
}

onBothEngines('code that is under way', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('reaches no host and no token once its reactor is deleted', async () => {
    const tenant = await newTenant();
    const called = await calledWhile(tenant, (id) => sendReactor(tenant, 'DELETE', `/${id}`));
    assert.match(called.body.raw.fetched, /no reactor with this id/, called.text);
    assert.match(called.body.raw.read, /no reactor with this id/, called.text);
  });

  test('reaches no token once its reactor is lent no rights any more', async () => {
    const tenant = await newTenant();
    const called = await calledWhile(tenant, (id) =>
      sendReactor(tenant, 'PATCH', `/${id}`, { body: { application: null } }),
    );
    assert.equal(called.body.raw.fetched, 'done', called.text);
    assert.match(called.body.raw.read, /no rights/, called.text);
  });

  test('reaches no host and no token of a tenant that is deleted', async () => {
    const tenant = await newTenant();
    const called = await calledWhile(tenant, () =>
      tenant.send('DELETE', '/tenants/self', { key: tenant.managementKey }),
    );
    assert.match(called.body.raw.fetched, /tenant is gone/, called.text);
    assert.match(called.body.raw.read, /tenant is gone/, called.text);
  });
});
