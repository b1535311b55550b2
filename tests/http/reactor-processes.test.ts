/** Code that waits for other hosts keeps no other tenant from running code, and nobody from storing it. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { answer } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { createReactor, echo, invoker, sendReactor, takeDue } from '../support/reactors.ts';
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

  test('asynchronous calls of four tenants that wait for hosts hold up no fifth', async () => {
    const released = Promise.withResolvers<void>();
    const arrived: string[] = [];
    let lookAgain = () => {};
    destination.behave(async (exchange) => {
      arrived.push(exchange.request.url ?? '');
      lookAgain();
      await released.promise;
      await answer(200, [], 'ok')(exchange);
    });
    const arrivals = async (path: string, count: number) => {
      while (arrived.filter((one) => one === path).length < count) {
        await new Promise<void>((resolve) => {
          lookAgain = resolve;
        });
      }
    };
    const callWaiting = async (path: string, count: number) => {
      const tenant = await newTenant();
      const code = `module.exports = async () => ({ raw: (await fetch('${url}${path}')).status })`;
      const { id } = await createReactor(tenant, { code, runtime: { timeout: 30 } });
      const key = await invoker(tenant);
      for (let calls = 0; calls < count; calls += 1) {
        const sent = { key, body: { args: {} } };
        const accepted = await tenant.send('POST', `/reactors/${id}/react-async`, sent);
        assert.equal(accepted.status, 202, accepted.text);
      }
      return tenant.vault.running.vault.reactorRuns;
    };
    for (let tenants = 0; tenants < 3; tenants += 1) await callWaiting('/held', 3);
    await takeDue(await callWaiting('/held', 3));
    await arrivals('/held', 8);
    const runs = await callWaiting('/fifth', 1);
    await takeDue(runs);
    await arrivals('/fifth', 1);
    released.resolve();
    do await runs?.settled();
    while ((await takeDue(runs)) > 0);
    assert.equal(arrived.filter((path) => path === '/held').length, 12);
  });
});
