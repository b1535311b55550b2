/** Finding the proxy of a call, of whatever tenant, and on every server as it is now. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { createProxyFinder, type FoundProxy } from '../../src/proxies/find.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { guarded } from '../support/guarded.ts';
import { createProxy, sendProxy } from '../support/proxies.ts';
import { publicEnvironment } from '../support/proxy-calls.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const origin = { address: '203.0.113.7', traceId: 'trace', dialect: 'SVC' };
/** Longer than any row is remembered. */
const laterMs = 1001;

const finderOf = ({ running }: TestVault, onAltered = () => {}) =>
  createProxyFinder({
    ...running.vault,
    tenants: guarded(running.vault.tenants, onAltered),
    names: { own: [], proxyDomain: undefined },
  });

const proxyIn = (found: FoundProxy | undefined) => {
  assert.ok(found && 'proxy' in found);
  return found.proxy;
};

async function assertAltered(engine: Engine, tenant: TestTenant, sets: string): Promise<void> {
  const { vault } = tenant;
  const { id, key } = await createProxy(tenant, { proxy_host: 'altered.example.com' });
  let alerts = 0;
  const finder = finderOf(vault, () => void alerts++);
  assert.equal(proxyIn(await finder.byKey(key, origin)).id, id);
  await engine.run(vault.place, `update proxies set ${sets} where proxy_id = '${id}'`);
  vault.clock.advance(laterMs);
  // The embedded engine shows one turn of the event loop the same.
  await new Promise((resolve) => setImmediate(resolve));
  const logged = await alertsOf(tenant, id);
  for (const find of [
    () => finder.byKey(key, origin),
    () => finder.byHost('altered.example.com', origin),
  ]) {
    const found = await find();
    assert.deepEqual(found && 'altered' in found && found.altered, id, sets);
    vault.clock.advance(laterMs);
  }
  assert.equal(alerts, 2, sets);
  assert.equal(await alertsOf(tenant, id), logged + 2, sets);
  const read = await sendProxy(tenant, 'GET', `/${id}`);
  assert.equal(read.status, 500);
  assert.equal(read.body.type, 'urn:strongroom:problem:integrity');
  const list = await sendProxy(tenant, 'GET', '');
  assert.equal(list.status, 200);
  assert.ok(
    list.body.data.every((proxy: { id: string }) => proxy.id !== id),
    sets,
  );
  const body = { name: 'x' };
  assert.equal((await sendProxy(tenant, 'PATCH', `/${id}`, { body })).status, 500);
  assert.equal((await sendProxy(tenant, 'DELETE', `/${id}`)).status, 204);
  const left = await tenant.rows('proxy_addresses');
  assert.ok(left.every(({ proxy_id }) => proxy_id !== id));
}

async function alertsOf(tenant: TestTenant, id: string): Promise<number> {
  return (await tenant.rows('logs')).filter(
    ({ entity_id, message, result }) =>
      entity_id === id && message.includes('altered') && result === 'denied',
  ).length;
}

onBothEngines('the proxy of a call', (engine) => {
  test('is found by its key and by its host, with all that a call needs', async (t) => {
    const vault = await startVault(t, engine, { environment: publicEnvironment });
    const tenant = await newTenant(vault);
    const { id, key } = await createProxy(tenant, {
      destination_url: 'https://psp.example.com/v1//',
      configuration: { API_KEY: 'sk_hidden' },
      timeout: 7,
      require_auth: false,
      proxy_host: 'found.example.com',
      allowed_methods: ['POST'],
    });
    const finder = finderOf(vault);
    const proxy = proxyIn(await finder.byKey(key, origin));
    const { tenant: owner, configuration, ...rest } = proxy;
    assert.equal(owner.id, tenant.id);
    assert.deepEqual([...configuration.reveal()], [['API_KEY', 'sk_hidden']]);
    assert.deepEqual(rest, {
      id,
      name: 'Charge',
      destinationUrl: 'https://psp.example.com/v1',
      requestTransforms: [],
      responseTransforms: [],
      applicationId: undefined,
      requireAuth: false,
      disableDetokenization: false,
      hasSlowClientKey: false,
      allowEncrypted: false,
      allowedPaths: undefined,
      allowedMethods: ['POST'],
      timeoutMs: 7000,
      clientCertificate: undefined,
    });
    assert.doesNotMatch(inspect(proxy, { depth: 9 }) + JSON.stringify(proxy), /sk_hidden/);
    assert.equal(proxyIn(await finder.byHost('FOUND.example.com', origin)).id, id);
    for (const other of [
      '',
      key.toUpperCase(),
      `${key}0`,
      `${key.startsWith('x') ? 'y' : 'x'}${key.slice(1)}`,
      id,
    ]) {
      assert.equal(await finder.byKey(other, origin), undefined);
    }
    for (const other of ['example.com', '', 'x'.repeat(300)]) {
      assert.equal(await finder.byHost(other, origin), undefined);
    }
  });

  test('is as the last commit left it, at once on its server and within a second on others', async (t) => {
    const place = await engine.place(t);
    const vault = await startVault(t, engine, { place, environment: publicEnvironment });
    const tenant = await newTenant(vault);
    const { id, key } = await createProxy(tenant, { proxy_host: 'moving.example.com' });
    const own = finderOf(vault);
    // On the embedded engine there is one server; the other one here stands for it as well.
    const other =
      engine.name === 'postgres'
        ? await startVault(t, engine, { place, environment: publicEnvironment })
        : vault;
    const elsewhere = finderOf(other);
    const later = () => other.clock.advance(laterMs);
    assert.equal(proxyIn(await own.byKey(key, origin)).timeoutMs, 25_000);
    assert.equal(proxyIn(await elsewhere.byHost('moving.example.com', origin)).id, id);

    await sendProxy(tenant, 'PATCH', `/${id}`, { body: { timeout: 9 } });
    assert.equal(proxyIn(await own.byKey(key, origin)).timeoutMs, 9000);
    later();
    assert.equal(proxyIn(await elsewhere.byHost('moving.example.com', origin)).timeoutMs, 9000);

    await sendProxy(tenant, 'PATCH', `/${id}`, { body: { proxy_host: null } });
    await tenant.takeHosts('moving.example.com');
    const next = await createProxy(await newTenant(vault), { proxy_host: 'moving.example.com' });
    assert.equal(proxyIn(await own.byHost('moving.example.com', origin)).id, next.id);
    later();
    assert.equal(proxyIn(await elsewhere.byHost('moving.example.com', origin)).id, next.id);

    await sendProxy(tenant, 'DELETE', `/${id}`);
    assert.equal(await own.byKey(key, origin), undefined);
    later();
    assert.equal(await elsewhere.byKey(key, origin), undefined);

    const settings = { name: 'n', settings: { proxy_destinations: 'a.example' } };
    const { key: kept } = await createProxy(tenant);
    assert.equal(proxyIn(await own.byKey(kept, origin)).tenant.settings.proxy_destinations, '');
    const manage = { key: tenant.managementKey, body: settings };
    assert.equal((await tenant.send('PUT', '/tenants/self', manage)).status, 200);
    const { proxy_destinations } = proxyIn(await own.byKey(kept, origin)).tenant.settings;
    assert.equal(proxy_destinations, 'a.example');
    await tenant.send('DELETE', '/tenants/self', { key: tenant.managementKey });
    assert.equal(await own.byKey(kept, origin), undefined);
  });

  test('is refused with an alert when any of its columns was altered in the database', {
    skip: notOnCitus('its tables take no update that joins those of another column'),
  }, async (t) => {
    const vault = await startVault(t, engine, { environment: publicEnvironment });
    const tenant = await newTenant(vault);
    const other = await createProxy(tenant);
    const body = `(select body from proxies where proxy_id = '${other.id}')`;
    for (const sets of [
      "name = 'x'",
      'version = 2',
      'created_at = 1',
      "key_hash = 'x'",
      "host = 'x.example.com'",
      "proof = '1.x'",
      "modified_by = 'x'",
      `body = ${body}`,
    ]) {
      await assertAltered(engine, tenant, sets);
    }
  });

  test('is not another one because the directory was altered in the database', async (t) => {
    const vault = await startVault(t, engine, { environment: publicEnvironment });
    const [tenant, victim] = [await newTenant(vault), await newTenant(vault)];
    const own = await createProxy(tenant);
    await createProxy(victim, { proxy_host: 'victim.example.com' });
    const point = `update proxy_addresses set tenant_id = '${tenant.id}', proxy_id = '${own.id}'`;
    await engine.run(vault.place, `${point} where address = 'host:victim.example.com'`);
    const found = await finderOf(vault).byHost('victim.example.com', origin);
    assert.ok(found && 'altered' in found);
    assert.equal(await alertsOf(tenant, own.id), 1);
  });
});
