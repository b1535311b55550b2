/** Code that waits for other hosts keeps no other tenant from running code, and nobody from storing it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, echo, invoker, sendReactor } from '../support/reactors.ts';
import { tenantsOf } from '../support/tenant.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('processes of code', (engine) => {
  const newTenant = tenantsOf(engine, { environment });

  test('calls of two tenants that wait for hosts refuse nothing to a third', async () => {
    const released = Promise.withResolvers<void>();
    const arrived: Promise<void>[] = [];
    const arrivals: (() => void)[] = [];
    for (let count = 0; count < 4; count += 1) {
      const { promise, resolve } = Promise.withResolvers<void>();
      arrived.push(promise);
      arrivals.push(resolve);
    }
    destination.behave(async (exchange) => {
      arrivals.shift()?.();
      await released.promise;
      await answer(200, [], 'ok')(exchange);
    });
    const waits = `module.exports = async () => ({ raw: (await fetch('${url}/')).status })`;
    const calls: Promise<{ readonly status: number }>[] = [];
    for (let tenants = 0; tenants < 2; tenants += 1) {
      const tenant = await newTenant();
      const { id } = await createReactor(tenant, { code: waits, runtime: { timeout: 30 } });
      const key = await invoker(tenant);
      for (let count = 0; count < 2; count += 1) {
        calls.push(tenant.send('POST', `/reactors/${id}/react`, { key, body: { args: {} } }));
      }
    }
    await Promise.all(arrived);
    const third = await newTenant();
    const { id } = await createReactor(third, { code: echo });
    const key = await invoker(third);
    const called = await third.send('POST', `/reactors/${id}/react`, {
      key,
      body: { args: { a: 1 } },
    });
    assert.equal(called.status, 200, called.text);
    const changed = await sendReactor(third, 'PUT', `/${id}`, {
      body: { name: 'New', code: echo },
    });
    assert.equal(changed.status, 200, changed.text);
    released.resolve();
    for (const { status } of await Promise.all(calls)) assert.equal(status, 200);
  });
});
