/** Clients without a private key that send slowly from several addresses: nobody else waits for them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { shareLimits } from '../../src/http/limits/shares.ts';
import { onBothEngines } from '../support/engines.ts';
import { beginRequest } from '../support/raw-request.ts';
import { startVault, type TestVault } from '../support/vault.ts';

const environment = { STRONGROOM_RATE_LIMITS: '', STRONGROOM_TRUSTED_PROXIES: '127.0.0.1' };

/** As many requests as one address may send at once. */
const ofAddress = 60;

async function sendSlowly(t: TestContext, vault: TestVault, key: string, count: number) {
  for (let begun = 0; begun < count; begun += ofAddress) {
    const address = `192.0.2.${1 + begun / ofAddress}`;
    const requests = Array.from({ length: Math.min(ofAddress, count - begun) }, () =>
      beginRequest({
        url: vault.url,
        method: 'POST',
        path: '/tokens',
        length: 100,
        headers: { 'svc-api-key': key, 'x-forwarded-for': address },
      }),
    );
    for (const { socket } of await Promise.all(requests)) t.after(() => socket.destroy());
  }
}

onBothEngines('Slow visitors', (engine) => {
  test('hold every slot of a tenant only until another visitor comes', async (t) => {
    const vault = await startVault(t, engine, { environment });
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    await sendSlowly(t, vault, key, shareLimits.visitorsOfTenant.underWayMax);
    const created = await vault.send('POST', '/tokens', {
      key,
      body: { type: 'token', data: 'other' },
      headers: { 'x-forwarded-for': '198.51.100.1' },
    });
    assert.equal(created.status, 201, created.text);
  });
});
