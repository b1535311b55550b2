/** Two servers whose clocks differ by a minute: every rule about time holds on each, and none breaks. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { verifyLog } from '../support/rows.ts';
import { newTenant } from '../support/tenant.ts';
import { visa } from '../support/values.ts';
import { createTestClock, startVault, type TestVault } from '../support/vault.ts';

const minute = 60_000;
const hour = 60 * minute;
const jobs = ['expire tokens', 'expire card codes', 'forget replies'];

async function skewed(t: TestContext, engine: Engine) {
  const behind = await startVault(t, engine);
  const clock = createTestClock();
  clock.advance(minute);
  const ahead = await startVault(t, engine, { place: behind.place, clock });
  const tenant = await newTenant(behind);
  const { key } = tenant;
  const both = [behind, ahead] as const;
  return {
    behind,
    ahead,
    tenant,
    both,
    send: (vault: TestVault, method: string, path: string, sent = {}) =>
      vault.send(method, path, { key, ...sent }),
    advance: (milliseconds: number) => {
      for (const vault of both) vault.clock.advance(milliseconds);
    },
    work: async () => {
      for (const vault of both) for (const job of jobs) await runJob(vault, job);
    },
  };
}

onBothEngines('Clocks a minute apart', (engine) => {
  test('an idempotency key has one effect, whichever server is asked first', async (t) => {
    const { both, send, tenant, advance, work } = await skewed(t, engine);
    for (const [index, first] of both.entries()) {
      const sent = {
        body: { type: 'token', data: index },
        headers: { 'svc-idempotency-key': `k-${index}` },
      };
      const made = await send(first, 'POST', '/tokens', sent);
      assert.equal(made.status, 201);
      for (const vault of both) {
        assert.equal((await send(vault, 'POST', '/tokens', sent)).text, made.text);
      }
      advance(24 * hour - 2 * minute);
      await work();
      for (const vault of both) {
        assert.equal((await send(vault, 'POST', '/tokens', sent)).text, made.text);
      }
    }
    assert.equal((await tenant.counts())['tokens'], 2);
  });

  test('a token and a card code end on each server by its own clock, and go when both say so', async (t) => {
    const { behind, ahead, send, tenant, advance, work } = await skewed(t, engine);
    const expires_at = new Date(behind.clock.now() + 2 * hour).toISOString();
    await tenant.token({ id: 'own', type: 'card', data: visa, expires_at });
    const code = async (vault: TestVault) =>
      (await send(vault, 'GET', '/tokens/own')).body.data?.cvc;
    advance(hour - minute / 2);
    await work();
    assert.deepEqual([await code(behind), await code(ahead)], [visa.cvc, undefined]);
    advance(minute);
    assert.deepEqual([await code(behind), await code(ahead)], [undefined, undefined]);
    const status = async (vault: TestVault) => (await send(vault, 'GET', '/tokens/own')).status;
    advance(hour - minute);
    await work();
    assert.deepEqual([await status(behind), await status(ahead)], [200, 404]);
    advance(10 * minute);
    assert.deepEqual([await status(behind), await status(ahead)], [404, 404]);
    await work();
    assert.equal((await tenant.counts())['tokens'], 0);
  });

  test('changes of one token alternate between the servers, and the log is whole', async (t) => {
    const { behind, ahead, both, send, tenant } = await skewed(t, engine);
    const body = { type: 'token', data: 'equal', deduplicate_token: true };
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        send(index % 2 === 0 ? behind : ahead, 'POST', '/tokens', { body }),
      ),
    );
    assert.equal(new Set(made.map((answer) => answer.body.id)).size, 1);
    const path = `/tokens/${made[0]?.body.id}`;
    for (let turn = 0; turn < 6; turn += 1) {
      const patch = { body: { metadata: { [`k${turn}`]: 'v' } } };
      const answer = await send(both[turn % 2] ?? behind, 'PATCH', path, patch);
      assert.equal(answer.status, 200);
    }
    const { metadata } = (await send(behind, 'GET', path)).body;
    assert.equal(Object.keys(metadata).length, 6);
    const listed = await ahead.send('GET', '/logs?size=100', { key: tenant.managementKey });
    assert.equal(listed.status, 200);
    assert.ok(listed.body.data.length > 25);
    for (const vault of both) await vault.stop();
    await verifyLog(engine, behind.place);
  });
});
