/** Events on their way to receivers: signed, at least once, in order where asked for, again when refused. */
import assert from 'node:assert/strict';
import { constants, createVerify } from 'node:crypto';
import { test } from 'node:test';
import { day, hour, minute, second } from '../../src/lib/clock.ts';
import { attemptsOf } from '../../src/vault/events/delivery-row.ts';
import { answer, hang } from '../support/destination.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import {
  addWebhook,
  allowing,
  type Receiver,
  startReceiver,
  verifyStandard,
} from '../support/receivers.ts';
import type { Lender } from '../support/temporary.ts';
import { newTenant } from '../support/tenant.ts';
import { startVault, type TestVault } from '../support/vault.ts';

async function start(t: Lender, engine: Engine, receivers: readonly Receiver[]) {
  const environment = allowing(t, receivers);
  const vault = await startVault(t, engine, { environment });
  return { vault, tenant: await newTenant(vault) };
}

const processOf = (vault: TestVault) => vault.running.vault;

onBothEngines('delivery', (engine) => {
  test('what happens to a token arrives, signed in both ways, in its order, with who did it', async (t) => {
    const receiver = await startReceiver(t);
    const { vault, tenant } = await start(t, engine, [receiver]);
    await addWebhook(processOf(vault), tenant.id, { url: receiver.url });
    const token = (await tenant.token({ type: 'token', data: 'a value' })).body;
    await tenant.send('GET', `/tokens/${token.id}`);
    await tenant.send('DELETE', `/tokens/${token.id}`);
    await receiver.until((arrivals) => arrivals.length === 3);
    const ofToken = receiver.arrivals.map(({ event }) => event);
    const inOrder = ofToken.toSorted((one, other) => one.sequence - other.sequence);
    assert.deepEqual(
      inOrder.map(({ type, sequence }) => [type, sequence]),
      [
        ['token.created', 1],
        ['token.read', 2],
        ['token.deleted', 3],
      ],
    );
    const publicKey = (await vault.send('GET', '/keys/webhooks.v1.key')).text;
    for (const arrival of receiver.arrivals) {
      verifyStandard(arrival);
      const { headers, body, event } = arrival;
      assert.equal(headers['svc-signature-version'], 'v1');
      const padding = constants.RSA_PKCS1_PSS_PADDING;
      const verifier = createVerify('SHA256').update(body);
      const signature = headers['svc-signature'] ?? '';
      assert.ok(verifier.verify({ key: publicKey, padding }, signature, 'base64'));
      assert.equal(headers['webhook-id'], event.id);
      assert.equal(event.tenant_id, tenant.id);
      assert.equal(event.data.token.id, token.id);
      assert.equal(event.data.actor.type, 'application');
      assert.ok(event.data.actor.name);
      assert.ok(Math.abs(Date.parse(arrival.delivered_at) - Date.now()) < minute);
      assert.doesNotMatch(body.toString(), /a value/);
    }
  });
});
