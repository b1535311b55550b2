/**
 * Nothing that a tenant stores decides about requests that were not sent to that tenant: a management key writes the
 * names and paths of others into every text of every resource. An attribute that is added later is tried as well.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { requestsWith } from '../support/requests.ts';
import { newTenant } from '../support/tenant.ts';
import { routesOf, startVault } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });
destination.behave(answer(200, [], 'from the destination'));

/** By which others reach the vault, known to it or not, and where they send. */
const hosts = ['vault.example.com', 'vault.internal.example.com', 'vault.acme.com'];
const texts = [...hosts, '/tokens', '/readyz'];
const writing = ['POST', 'PUT', 'PATCH'];

onBothEngines('where requests go', (engine) => {
  test('no text of a tenant leads requests of others, or of nobody, anywhere', async (t) => {
    const vault = await startVault(t, engine, { environment });
    const [attacker, victim] = [await newTenant(vault), await newTenant(vault)];
    const ask = async (host: string) => {
      const headers = { host };
      const body = { type: 'token', data: 'of the victim' };
      const received = [
        ...(await Promise.all(
          ['/healthz', '/readyz', '/ping', '/nowhere'].map((path) =>
            vault.send('GET', path, { headers }),
          ),
        )),
        await victim.send('GET', '/tenants/self', { headers }),
        await victim.send('POST', '/tokens', { headers, body }),
      ];
      return received.map(({ status }) => status);
    };
    const before = await Promise.all(hosts.map(ask));
    const { id } = await createProxy(attacker, { destination_url: url, require_auth: false });
    const plausible = {
      id,
      name: 'n',
      destination_url: url,
      url,
      code: 'module.exports = () => 1',
    };
    let written = 0;
    for (const route of (await routesOf(vault)).filter(({ method }) => writing.includes(method))) {
      for (const text of texts) {
        for (const { place, method, path, body, mediaType } of requestsWith(
          route,
          text,
          plausible,
        )) {
          // Deleted, changed and stored by whatever is asked for; only where others are led matters.
          if (place === 'body.code') continue;
          const sent = { body: JSON.stringify(body), headers: { 'content-type': mediaType } };
          const received = await vault.send(method, path, { key: attacker.managementKey, ...sent });
          if (received.status < 300) written += 1;
        }
      }
    }
    assert.ok(written > 20, `only ${written} were written`);
    const count = destination.requests.length;
    vault.clock.advance(1001);
    assert.deepEqual(await Promise.all(hosts.map(ask)), before);
    assert.equal(destination.requests.length, count);
  });
});
