/** A crash while another host is called: the log says what was sent, and no retry sends it again. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { startHost } from '../support/host.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { rowsOf } from '../support/rows.ts';
import { bank } from '../support/values.ts';
import { createApplication, managementKey, request } from '../support/vault.ts';

const host = await startHost({ after });
const environment = {
  STRONGROOM_OUTBOUND_ALLOW: host.name,
  STRONGROOM_BANK_PROVIDER_URL: `${host.url}/verify`,
  STRONGROOM_BANK_PROVIDER_REQUEST: '{"rtn": "{{ routing_number }}"}',
  STRONGROOM_BANK_PROVIDER_ANSWER: '{{ body.result }}',
};

onBothEngines('A crash while another host is called', (engine) => {
  test('leaves an entry that says so, and an idempotency key that calls nobody again', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place, environment));
    const key = await createApplication(vault.url);
    const settings = { bank_verification_provider: 'http' };
    const chosen = { key: managementKey, body: { name: 'default', settings } };
    assert.equal((await request(`${vault.url}/tenants/self`, 'PUT', chosen)).status, 200);
    const body = { id: 'account', type: 'bank', data: bank };
    assert.equal((await request(`${vault.url}/tokens`, 'POST', { key, body })).status, 201);

    host.requests.length = 0;
    host.answer(() => void vault.kill());
    const verify = '/enrichments/bank-account-verify';
    const headers = { 'svc-idempotency-key': 'once' };
    const sent = { key, body: { token_id: 'account' }, headers };
    await assert.rejects(request(vault.url + verify, 'POST', sent));
    await vault.finished;

    host.answer((response) => response.end('{"result":"enabled"}'));
    const next = await spawnVault(t, environmentOf(place, environment));
    const retried = await request(next.url + verify, 'POST', sent);
    assert.equal(retried.status, 409);
    assert.match(retried.body.detail, /was interrupted/);
    assert.equal(host.requests.length, 1);
    const entries = (await rowsOf(engine, place, 'logs'))
      .filter(({ entity_type, entity_id }) => entity_type === 'token' && entity_id === 'account')
      .sort((one, two) => one.seq - two.seq);
    assert.deepEqual(
      entries.map(({ operation }) => operation),
      ['create', 'use'],
    );
    const other = { ...sent, headers: { 'svc-idempotency-key': 'another' } };
    assert.deepEqual((await request(next.url + verify, 'POST', other)).body, { status: 'enabled' });
  });
});
