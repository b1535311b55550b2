/** What the vault calls for its operator may be in the operator's network, and no tenant reaches it for that. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { newTenant } from '../support/tenant.ts';
import { bank } from '../support/values.ts';
import { startVault } from '../support/vault.ts';

onBothEngines("services of the operator's own", (engine) => {
  test('are called in the private network, and proxies are not', async (t) => {
    const { destination, url, environment } = await startCalled(t);
    destination.behave(answer(200, ['content-type', 'application/json'], '{"status": "enabled"}'));
    const { STRONGROOM_OUTBOUND_ALLOW: _, ...unlisted } = environment;
    const vault = await startVault(t, engine, {
      environment: {
        ...unlisted,
        STRONGROOM_BANK_PROVIDER_URL: `${url}/bank`,
        STRONGROOM_CHECKPOINT_SINK: `${url}/anchor`,
      },
    });
    const tenant = await newTenant(vault);
    await tenant.set({ bank_verification_provider: 'http' });
    const { body } = await tenant.token({
      type: 'us_bank_account_number',
      data: bank.account_number,
    });
    const sent = { body: { token_id: body.id, routing_number: bank.routing_number } };
    const verified = await tenant.send('POST', '/enrichments/bank-account-verify', sent);
    assert.equal(verified.body.status, 'enabled', verified.text);
    const proxy = await createProxy(tenant, { destination_url: `${url}/charge` });
    const headers = { 'svc-proxy-key': proxy.key };
    const called = await tenant.send('POST', '/proxy', { headers, body: {} });
    assert.equal(called.status, 403, called.text);
    await vault.stop();
    const paths = new Set(destination.requests.map(({ url: path }) => path));
    assert.deepEqual(paths, new Set(['/bank', '/anchor']));
  });
});
