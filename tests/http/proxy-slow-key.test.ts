/** A proxy with a client key that an earlier release took, and with which every handshake takes seconds. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import { openProxy, proxyRow } from '../../src/proxies/row.ts';
import { onBothEngines } from '../support/engines.ts';
import { testOpener } from '../support/openings.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('A slow client key', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  /** A proxy with such a key. @returns how to call it. */
  async function slowProxy(tenant: TestTenant) {
    const { cert: client_certificate, key } = destination.issue('client');
    const given = { client_certificate, client_key: key, destination_url: url };
    const call = await proxyOf(tenant, given);
    const { running } = tenant.vault;
    const { store } = running.vault;
    const found = await running.vault.tenants.find(tenant.id);
    const row = (await tenant.rows('proxies')).find(({ proxy_id }) => proxy_id === call.id);
    const [entry] = await tenant.rows('logs');
    assert.ok(found && row && entry);
    const before = openProxy(testOpener(found), row).reveal();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4_104 });
    const client_key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const body = { ...before, definition: { ...before.definition, client_key } };
    const next = { ...row, version: row.version + 1 };
    const replaced = proxyRow(found, { body, random: pooledRandom() }, next);
    await store.commit({ replace: { proxies: [replaced] }, entries: [entry] });
    return call;
  }

  test('502: it is refused at use, with an error that names it, and nothing is sent', async () => {
    const tenant = await newTenant();
    const call = await slowProxy(tenant);
    const count = destination.sockets.length;
    const { status, body: problem, text } = await call('GET', '/');
    assert.equal(status, 502, text);
    assert.match(problem.proxy_error.detail, /client key/);
    assert.equal(destination.sockets.length, count);
  });

  test('doctor names the proxies that have one, and no other', async () => {
    const tenant = await newTenant();
    const { id } = await slowProxy(tenant);
    const { cert: client_certificate, key: client_key } = destination.issue('client');
    const other = await proxyOf(tenant, { client_certificate, client_key, destination_url: url });
    const examined = await runCommand(['doctor', '--json'], environmentOf(tenant.vault.place));
    const findings: readonly Record<string, string>[] = JSON.parse(examined.stdout).findings;
    const [found, ...others] = findings.filter(({ check }) => check === 'proxies');
    assert.deepEqual(others, []);
    const { status, message = '' } = found ?? {};
    assert.equal(status, 'warning');
    assert.ok(message.includes(`${id} (tenant ${tenant.id})`), message);
    assert.ok(!message.includes(String(other.id)), message);
  });
});
