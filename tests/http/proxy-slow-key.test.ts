/** A proxy with a client key that an earlier release took, and with which every handshake takes seconds. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';
import { openProxy, proxyRow } from '../../src/proxies/row.ts';
import { onBothEngines } from '../support/engines.ts';
import { testOpener } from '../support/openings.ts';
import { proxyOf, startCalled } from '../support/proxy-calls.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('A slow client key', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('502: it is refused at use, with an error that names it, and nothing is sent', async () => {
    const tenant = await newTenant();
    const { cert: client_certificate, key } = destination.issue('client');
    const given = { client_certificate, client_key: key, destination_url: url };
    const call = await proxyOf(tenant, given);
    const { running } = tenant.vault;
    const { store } = running.vault;
    const found = await running.vault.tenants.find(tenant.id);
    const [row] = await tenant.rows('proxies');
    const [entry] = await tenant.rows('logs');
    assert.ok(found && row && entry);
    const before = openProxy(testOpener(found), row).reveal();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 4_104 });
    const client_key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const body = { ...before, definition: { ...before.definition, client_key } };
    const next = { ...row, version: row.version + 1 };
    const replaced = proxyRow(found, { body, random: pooledRandom() }, next);
    await store.commit({ replace: { proxies: [replaced] }, entries: [entry] });
    const count = destination.sockets.length;
    const { status, body: problem, text } = await call('GET', '/');
    assert.equal(status, 502, text);
    assert.match(problem.proxy_error.detail, /client key/);
    assert.equal(destination.sockets.length, count);
  });
});
