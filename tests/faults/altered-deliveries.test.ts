/** Integers beyond 2^53, which only somebody else writes: what they stand for is not sent, and all else is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../src/base/clock.ts';
import { attemptsOf } from '../../src/webhooks/events/delivery-row.ts';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { addWebhook, allowing, type Receiver, startReceiver } from '../support/receivers.ts';
import { having } from '../support/sql.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';
import { sendWebhook } from '../support/webhooks.ts';

const inexact = '9007199254740993';

function hasArrived({ arrivals }: Receiver, token: string, type: string): boolean {
  return arrivals.some(({ event }) => event.type === type && event.data.token.id === token);
}

/** Polls the database, turn by turn, until the first attempt of each has failed. */
async function untilTried(tenant: TestTenant, count: number): Promise<void> {
  for (;;) {
    const rows = await tenant.rows('deliveries');
    if (rows.filter((row) => attemptsOf(row).length === 1).length === count) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

onBothEngines('integers that the vault cannot have written', (engine) => {
  test('stop no delivery of other rows or tenants, and are counted, logged and listed', async (t) => {
    const receivers = [await startReceiver(t), await startReceiver(t)] as const;
    const [receiver, otherReceiver] = receivers;
    const environment = allowing(t, receivers);
    const vault = await startVault(t, engine, { clock: createStillClock(), environment });
    const tenant = await newTenant(vault);
    const other = await newTenant(vault);
    const webhook = await addWebhook(vault.running.vault, tenant.id, { url: receiver.url });
    await addWebhook(vault.running.vault, other.id, { url: otherReceiver.url });
    receiver.behave(answer(500));
    const ids: string[] = [];
    for (let data = 0; data < 5; data++) {
      ids.push((await tenant.token({ type: 'token', data })).body.id);
    }
    await untilTried(tenant, ids.length);
    const deliveries = await tenant.rows('deliveries');
    const of = (token: string | undefined) => {
      const row = deliveries.find(({ entity_id }) => entity_id === token);
      assert.ok(row);
      return row;
    };
    const [early, created, event, sequence, whole] = ids as [
      string,
      string,
      string,
      string,
      string,
    ];
    const alter = async (
      table: 'deliveries' | 'events' | 'event_sequences' | 'leases',
      assignment: string,
      where: object,
    ) => {
      const condition = having(engine, table, where as never);
      await engine.run(vault.place, `update ${table} set ${assignment} where ${condition}`);
    };
    const tenant_id = tenant.id;
    await alter('deliveries', `due_at = -${inexact}`, {
      tenant_id,
      delivery_id: of(early).delivery_id,
    });
    await alter('deliveries', `created_at = ${inexact}`, {
      tenant_id,
      delivery_id: of(created).delivery_id,
    });
    await alter('events', `created_at = ${inexact}`, { tenant_id, event_id: of(event).event_id });
    await alter('event_sequences', `last = ${inexact}`, { tenant_id, entity_id: sequence });
    await alter('leases', `until = ${inexact}`, { tenant_id });
    receiver.behave(answer());
    vault.clock.advance(minute);
    await tenant.send('GET', `/tokens/${sequence}`);
    const fresh = (await tenant.token({ type: 'token', data: 'fresh' })).body.id;
    const ofOther = (await other.token({ type: 'token', data: 1 })).body.id;
    await otherReceiver.until(() => hasArrived(otherReceiver, ofOther, 'token.created'));
    const before = receiver.arrivals.length;
    await receiver.until(
      () =>
        hasArrived(receiver, fresh, 'token.created') &&
        hasArrived(receiver, sequence, 'token.read') &&
        receiver.arrivals.filter(({ event: { data } }) => data.token.id === whole).length === 2,
    );
    assert.ok(receiver.arrivals.length >= before);
    const listed = async () => {
      const { status, body } = await sendWebhook(tenant, 'GET', `/${webhook}/deliveries`);
      assert.equal(status, 200);
      const ends = (token: string) =>
        body.data
          .filter((one: { id: string }) => one.id === of(token).delivery_id)
          .map((one: { state: string; attempts: { error?: string }[] }) => [
            one.state,
            one.attempts.at(-1)?.error,
          ]);
      return [early, created, event].map((token) => ends(token)[0]);
    };
    const failed = ['failed', 'altered'];
    while ((await listed()).some(([state]) => state !== 'failed')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await listed(), [failed, failed, failed]);
    const { text } = await vault.send('GET', '/metrics', { key: tenant.managementKey });
    const count = /^strongroom_integrity_failures_total (\d+)$/m.exec(text)?.[1];
    assert.ok(Number(count) >= 4, text);
    assert.match(text, /^strongroom_webhook_deliveries_oldest_seconds \d/m);
    const lines = vault.logged.filter(({ message }) => /altered outside the vault/.test(message));
    assert.equal(lines.length, 1);
    assert.doesNotMatch(JSON.stringify(lines), new RegExp(inexact));
  });
});
