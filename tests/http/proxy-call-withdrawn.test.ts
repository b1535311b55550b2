/** Code of a proxy that is under way when its proxy, what that was lent, or its caller's key is taken away. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { sendProxy } from '../support/proxies.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { type Received, revealEverything } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

/** Sends a request, then reads a token and sends what came of it, whatever became of that. */
const code = `module.exports = async ({ args: { body: { id, url } }, bt }) => {
  await fetch(url + '/first');
  const read = await bt.tokens.retrieve(id).then(({ data }) => data, (error) => error.message);
  await fetch(url + '/told', { method: 'POST', body: read }).catch(() => {});
  return { body: { read } } }`;

interface Withdrawable {
  readonly tenant: TestTenant;
  readonly proxy: string;
  readonly application: string;
  /** Deletes the key of the caller that has one. */
  readonly endKey: () => Promise<Received>;
}

interface Called {
  readonly status: number;
  /** What the destination was sent by the code, and by the proxy. */
  readonly told: string | undefined;
  readonly passed: string | undefined;
  readonly reads: number;
}

interface Setup {
  readonly given?: Given;
  readonly hasKey?: boolean;
  readonly withdraw: (from: Withdrawable) => Promise<Received>;
}

/** Calls a proxy with that code, and withdraws something before the first request of the code is answered. */
async function calledWhile(
  tenant: TestTenant,
  { given = {}, hasKey = false, withdraw }: Setup,
): Promise<Called> {
  const { body: token } = await tenant.token({ type: 'token', data: 'the secret' });
  const manage = (method: string, path: string, body: Given) =>
    tenant.send(method, path, { key: tenant.managementKey, body });
  const linked = await manage('POST', '/applications', {
    name: 'linked',
    type: 'private',
    rules: [{ ...revealEverything, permissions: ['token:read', 'token:create'] }],
  });
  const calling = await manage('POST', '/applications', {
    name: 'calling',
    type: 'private',
    permissions: ['proxy:invoke'],
  });
  const call = await proxyOf(tenant, {
    destination_url: url,
    request_transforms: [{ code }],
    require_auth: hasKey,
    application: { id: linked.body.id },
    ...given,
  });
  const path = `/applications/${calling.body.id}/keys/${calling.body.keys[0].id}`;
  const endKey = () => tenant.send('DELETE', path, { key: tenant.managementKey });
  const from = { tenant, proxy: call.id, application: linked.body.id, endKey };
  const sent = new Map<string, string>();
  destination.behave(async ({ request, response, received }) => {
    if (request.url === '/first') {
      const withdrawn = await withdraw(from);
      assert.ok([200, 204].includes(withdrawn.status), withdrawn.text);
    }
    sent.set(request.url ?? '', (await received).body.toString());
    response.end();
  });
  const key = hasKey ? calling.body.key : undefined;
  const called = await call('POST', '/passed', { key, body: { id: token.id, url } });
  const entries = await tenant.rows('logs');
  const reads = entries.filter((one) => one.operation === 'read' && one.result === 'success');
  assert.ok(sent.has('/first'), called.text);
  const { status } = called;
  return { status, told: sent.get('/told'), passed: sent.get('/passed'), reads: reads.length };
}

const nothing = { told: undefined, passed: undefined, reads: 0 };

onBothEngines('code of a proxy that is under way', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('without a withdrawal, reads what its proxy is lent and passes it on', async () => {
    const withdraw = ({ tenant }: Withdrawable) => tenant.send('GET', '/ping');
    for (const hasKey of [false, true]) {
      const called = await calledWhile(await newTenant(), { hasKey, withdraw });
      const passed = JSON.stringify({ read: 'the secret' });
      assert.deepEqual(called, { status: 200, told: 'the secret', passed, reads: 1 });
    }
  });

  for (const hasKey of [false, true]) {
    const caller = hasKey ? 'with a key' : 'without a key';

    test(`reaches no host and no token once its proxy is deleted, for a caller ${caller}`, async () => {
      const called = await calledWhile(await newTenant(), {
        hasKey,
        withdraw: ({ tenant, proxy }) => sendProxy(tenant, 'DELETE', `/${proxy}`),
      });
      assert.deepEqual(called, { status: 404, ...nothing });
    });

    test(`reaches no token once its application is unlinked from the proxy, for a caller ${caller}`, async () => {
      const called = await calledWhile(await newTenant(), {
        hasKey,
        withdraw: ({ tenant, proxy }) =>
          sendProxy(tenant, 'PATCH', `/${proxy}`, { body: { application: null } }),
      });
      // A caller without a key acted with the rights of the application as well.
      assert.equal(called.status, hasKey ? 200 : 403);
      assert.equal(called.reads, 0);
      assert.doesNotMatch(`${called.told}${called.passed}`, /the secret/);
    });

    test(`reaches no token once the application may not read any more, for a caller ${caller}`, async () => {
      const called = await calledWhile(await newTenant(), {
        hasKey,
        withdraw: ({ tenant, application }) =>
          tenant.send('PUT', `/applications/${application}`, {
            key: tenant.managementKey,
            body: {
              name: 'linked',
              rules: [{ ...revealEverything, permissions: ['token:create'] }],
            },
          }),
      });
      assert.equal(called.status, 200);
      assert.equal(called.reads, 0);
      assert.match(`${called.told}`, /lacks the permission token:read/);
    });

    test(`reaches no token once the application is deleted, for a caller ${caller}`, async () => {
      const called = await calledWhile(await newTenant(), {
        hasKey,
        withdraw: ({ tenant, application }) =>
          tenant.send('DELETE', `/applications/${application}`, { key: tenant.managementKey }),
      });
      assert.equal(called.reads, 0);
      assert.doesNotMatch(`${called.told}${called.passed}`, /the secret/);
    });
  }

  test('reaches nothing once its proxy asks for a key', async () => {
    const called = await calledWhile(await newTenant(), {
      withdraw: ({ tenant, proxy }) =>
        sendProxy(tenant, 'PATCH', `/${proxy}`, { body: { require_auth: true } }),
    });
    assert.deepEqual(called, { status: 401, ...nothing });
  });

  test('reaches nothing once its code is taken from the proxy', async () => {
    const runtime = { image: 'node22', permissions: ['token:read'] };
    const newer = code
      .replace('({ args: {', '({ req: {')
      .replace('{ body: { read } }', '{ req: { body: { read } } }');
    const called = await calledWhile(await newTenant(), {
      given: { application: null, request_transforms: [{ code: newer, options: { runtime } }] },
      withdraw: ({ tenant, proxy }) =>
        sendProxy(tenant, 'PATCH', `/${proxy}`, { body: { request_transforms: [] } }),
    });
    assert.deepEqual([called.told, called.reads], [undefined, 0]);
  });

  test('sends nothing on once the key of its caller is deleted', async () => {
    const called = await calledWhile(await newTenant(), {
      hasKey: true,
      withdraw: ({ endKey }) => endKey(),
    });
    assert.deepEqual(called, { status: 401, ...nothing });
  });
});
