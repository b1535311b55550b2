/** A stop while destinations are called: what answers in time reaches its caller, and nobody waits for the rest. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { finishMsMax } from '../../src/http/transport.ts';
import { answer, hang } from '../support/destination.ts';
import { onBothEngines } from '../support/engines.ts';
import { environmentOf, spawnVault } from '../support/process.ts';
import { startCalled } from '../support/proxy-calls.ts';
import { untilClosed } from '../support/raw-request.ts';
import { rowsOf, verifyLog } from '../support/rows.ts';
import { createApplication, request } from '../support/vault.ts';

const { destination, url, environment } = await startCalled({ after });

onBothEngines('A stop while a destination is called', (engine) => {
  test('passes on what comes in time, cuts off what does not, and keeps the entry of each', async (t) => {
    const place = await engine.place(t);
    const vault = await spawnVault(t, environmentOf(place, environment));
    const permissions = ['token:create', 'proxy:invoke'];
    const key = await createApplication(vault.url, { permissions });
    const body = { id: 'charged', type: 'token', data: 'value' };
    assert.equal((await request(`${vault.url}/tokens`, 'POST', { key, body })).status, 201);
    const call = () => {
      const arrived = Promise.withResolvers<void>();
      const held = Promise.withResolvers<void>();
      destination.behave(async (exchange) => {
        arrived.resolve();
        await held.promise;
        await answer(200, [], 'in time')(exchange);
      });
      const sent = { key, headers: { 'svc-proxy-url': url }, body: { value: '{{ charged }}' } };
      const received = request(`${vault.url}/proxy`, 'POST', sent);
      return { arrived: arrived.promise, release: held.resolve, received };
    };
    const quick = call();
    await quick.arrived;
    const slow = call();
    const cut = assert.rejects(slow.received);
    await slow.arrived;
    destination.behave(hang);

    vault.terminate();
    await untilClosed(vault.url);
    const stopping = performance.now();
    quick.release();
    assert.equal((await quick.received).text, 'in time');
    await cut;
    const { code, stderr } = await vault.finished;
    slow.release();

    assert.equal(code, 0, stderr);
    assert.ok(performance.now() - stopping < 3 * finishMsMax, 'nobody waits for a destination');
    const entries = await rowsOf(engine, place, 'logs');
    const count = (operation: string) =>
      entries.filter(
        (entry) => entry.entity_type !== 'application_key' && entry.operation === operation,
      ).length;
    assert.equal(count('use'), 2);
    assert.ok(count('invoke') >= 1);
    await verifyLog(engine, place);
  });
});
