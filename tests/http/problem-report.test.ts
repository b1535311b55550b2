/** GET /tenants/self/reports/problems: what needs attention in the tenant. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { day } from '../../src/base/clock.ts';
import { writeCertificate } from '../support/certificate.ts';
import { onBothEngines } from '../support/engines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock } from '../support/vault.ts';

interface Problem {
  readonly kind: string;
  readonly severity: string;
  readonly entity_type: string;
  readonly entity_id: string;
}

async function report(tenant: TestTenant, key = tenant.managementKey) {
  const { status, body, text } = await tenant.send('GET', '/tenants/self/reports/problems', {
    key,
  });
  assert.equal(status, 200, text);
  return body as { readonly problems: readonly Problem[]; readonly not_checked: readonly string[] };
}

const kindsOf = async (tenant: TestTenant) =>
  (await report(tenant)).problems.map(({ kind, severity }) => `${kind} ${severity}`);

onBothEngines('the report of problems', (engine) => {
  const newTenant = tenantsOf(engine, { clock: createStillClock() });
  const manage = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });
  const created = async (tenant: TestTenant, path: string, body: unknown): Promise<string> => {
    const { status, body: one, text } = await manage(tenant, 'POST', path, body);
    assert.equal(status, 201, text);
    return one.id;
  };
  const url = 'https://receiver.invalid/events';
  const events = ['token.created'];

  test('GET 200: nothing in a tenant without problems', async () => {
    const tenant = await newTenant();
    assert.deepEqual(await report(tenant), { problems: [], not_checked: [] });
  });

  test('GET 200: a disabled webhook first, then the deliveries that failed', async () => {
    const tenant = await newTenant();
    const failing = await created(tenant, '/webhooks', { name: 'orders', url, events });
    const sent = await manage(tenant, 'POST', `/webhooks/${failing}/test`);
    assert.equal(sent.status, 202);
    const [row] = await tenant.rows('deliveries');
    assert.ok(row);
    const failed = { state: 'failed', attempts: '[]', due_at: row.due_at } as const;
    const { tenant_id, webhook_id, delivery_id, due_at } = row;
    await tenant.vault.running.vault.store.record({
      amend: {
        deliveries: [
          {
            tenant_id,
            webhook_id,
            delivery_id,
            ...failed,
            was_state: row.state,
            was_due_at: due_at,
          },
        ],
      },
    });
    const off = await created(tenant, '/webhooks', { name: 'off', url, events });
    await manage(tenant, 'PUT', `/webhooks/${off}`, {
      name: 'off',
      url,
      events,
      status: 'disabled',
    });
    const { problems } = await report(tenant);
    assert.deepEqual(
      problems.map(({ kind, severity, entity_id }) => [kind, severity, entity_id]),
      [
        ['webhook', 'problem', off],
        ['deliveries', 'warning', failing],
      ],
    );
  });

  test('GET 200: a certificate that ends within a month, and one that has ended', async (t) => {
    const tenant = await newTenant();
    const { cert, keyFile } = writeCertificate(temporaryDirectory(t));
    const id = await created(tenant, '/proxies', {
      name: 'psp',
      destination_url: 'https://psp.invalid',
      client_certificate: cert,
      client_key: readFileSync(keyFile, 'utf8'),
    });
    const { clock } = tenant.vault;
    const { body } = await manage(tenant, 'GET', `/proxies/${id}`);
    const end = Date.parse(body.client_certificate.expires_at);
    clock.advance(Math.max(0, end - clock.now() - 30 * day - 1000));
    const kinds = async () => (await kindsOf(tenant)).filter((one) => /^certificate/.test(one));
    assert.deepEqual(await kinds(), []);
    clock.advance(1000);
    assert.deepEqual(await kinds(), ['certificate warning']);
    clock.advance(30 * day);
    assert.deepEqual(await kinds(), ['certificate problem']);
  });

  test('GET 200: keys of applications that nobody uses, and quotas that are nearly used', async () => {
    const tenant = await newTenant();
    const forgotten = await tenant.application({ name: 'Forgotten' });
    await tenant.setQuotas({ webhook_limit: 5 });
    for (let made = 0; made < 4; made++)
      await created(tenant, '/webhooks', { name: 'w', url, events });
    assert.deepEqual(await kindsOf(tenant), ['quota warning']);
    await created(tenant, '/webhooks', { name: 'w', url, events });
    assert.deepEqual(await kindsOf(tenant), ['quota problem']);
    tenant.vault.clock.advance(91 * day);
    const ids = await Promise.all(
      [tenant.key, forgotten].map(
        async (key) => (await tenant.send('GET', '/applications/key', { key })).body.id,
      ),
    );
    tenant.vault.clock.advance(91 * day);
    const { problems } = await report(tenant);
    const unused = problems.filter(({ kind }) => kind === 'unused_key');
    assert.ok(ids.every((id) => unused.some(({ entity_id }) => entity_id === id)));
  });

  test('GET 200: an old data key, and a rotation that is paused or stuck', async () => {
    const tenant = await newTenant();
    const { clock } = tenant.vault;
    clock.advance(365 * day);
    assert.ok(!(await kindsOf(tenant)).includes('old_key warning'));
    clock.advance(2 * day);
    assert.ok((await kindsOf(tenant)).includes('old_key warning'));
    assert.equal(
      (await manage(tenant, 'POST', '/tenants/self/keys/rotations', { purpose: 'search' })).status,
      202,
    );
    const rotations = async () =>
      (await kindsOf(tenant)).filter((one) => /^key_rotation/.test(one));
    assert.deepEqual(await rotations(), []);
    clock.advance(61_000);
    assert.deepEqual(await rotations(), ['key_rotation warning']);
  });

  test('GET 200: a row that was altered, once a request has met it', async () => {
    const tenant = await newTenant();
    const id = await created(tenant, '/webhooks', { name: 'orders', url, events });
    const where = `tenant_id = '${tenant.id}' and webhook_id = '${id}'`;
    await engine.run(tenant.vault.place, `update webhooks set name = 'x' where ${where}`);
    assert.deepEqual((await report(tenant)).problems, []);
    assert.equal((await manage(tenant, 'GET', `/webhooks/${id}`)).status, 500);
    const { problems } = await report(tenant);
    assert.deepEqual(
      problems.map(({ kind, entity_type, entity_id }) => [kind, entity_type, entity_id]),
      [['altered_row', 'webhook', id]],
    );
    tenant.vault.clock.advance(31 * day);
    assert.ok(!(await kindsOf(tenant)).includes('altered_row problem'));
  });

  test('GET 200: what the key may not read is not looked at, and the response says so', async () => {
    const tenant = await newTenant();
    const off = await created(tenant, '/webhooks', { name: 'off', url, events });
    await manage(tenant, 'PUT', `/webhooks/${off}`, {
      name: 'off',
      url,
      events,
      status: 'disabled',
    });
    const only = (permissions: readonly string[]) =>
      tenant.application({ type: 'management', permissions });
    const { problems, not_checked } = await report(tenant, await only(['report:read']));
    assert.deepEqual(problems, []);
    assert.deepEqual(not_checked, [
      'application:read',
      'keys:rotate',
      'log:read',
      'proxy:read',
      'tenant:read',
      'webhook:read',
    ]);
    const more = await report(tenant, await only(['report:read', 'webhook:read']));
    assert.equal(more.problems.length, 1);
    assert.ok(!more.not_checked.includes('webhook:read'));
  });

  test('GET 403: without report:read', async () => {
    const tenant = await newTenant();
    for (const key of [
      tenant.key,
      await tenant.application({ type: 'management', permissions: ['webhook:read'] }),
    ]) {
      const { status } = await tenant.send('GET', '/tenants/self/reports/problems', { key });
      assert.equal(status, 403);
    }
  });

  test('no problem of another tenant is shown', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const off = await created(tenant, '/webhooks', { name: 'off', url, events });
    await manage(tenant, 'PUT', `/webhooks/${off}`, {
      name: 'off',
      url,
      events,
      status: 'disabled',
    });
    assert.ok((await kindsOf(tenant)).includes('webhook problem'));
    assert.ok(!(await kindsOf(other)).includes('webhook problem'));
  });
});
