/** A crash while a destination is called: the log says which tokens were sent, and where. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { rowsOf } from '../support/rows.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('A crash while a destination is called', (engine) => {
  test('leaves the entry of each token, and none of the call', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place, environment));
    const key = await createApplication(vault.url, {
      permissions: ['token:create', 'proxy:invoke'],
    });
    const body = { id: 'charged', type: 'token', data: 'value' };
    assert.equal((await request(`${vault.url}/tokens`, 'POST', { key, body })).status, 201);
    destination.behave(() => void vault.kill());
    const headers = { 'svc-proxy-url': url };
    const sent = { key, headers, body: { value: '{{ charged }}' } };
    await assert.rejects(request(`${vault.url}/proxy`, 'POST', sent));
    await vault.finished;

    const next = await spawnVault(t, environmentOf(place, environment));
    const logs = await request(`${next.url}/logs?size=100`, 'GET', { key: managementKey });
    assert.equal(logs.status, 200);
    const entries = await rowsOf(engine, place, 'logs');
    const used = entries.filter(
      ({ operation, entity_id }) => operation === 'use' && entity_id === 'charged',
    );
    assert.equal(used.length, 1);
    const { host } = new URL(url);
    assert.equal(used[0]?.message, `Token used in a proxy call: POST to ${host}, proxy ephemeral`);
    assert.ok(!entries.some(({ operation }) => operation === 'invoke'));
  });
});
