/** Expired tokens: off the disk within the hour, each with its entry, on however many servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keysMax } from '../../../src/runtime/jobs/batches.ts';
import { batchMin, rowsPerSecondMax } from '../../../src/runtime/jobs/pace.ts';
import { onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { bulk } from '../../support/lines.ts';
import { newTenant, type TestTenant, tenantsOf } from '../../support/tenant.ts';
import { startVault } from '../../support/vault.ts';

const minute = 60_000;
const hour = 60 * minute;

/** Tokens with search terms that expire in an hour. */
async function expiringTokens(tenant: TestTenant, count: number): Promise<void> {
  const expires_at = new Date(tenant.vault.clock.now() + hour).toISOString();
  const body = { type: 'token', search_indexes: ['{{ data }}'], metadata: { k: 'v' }, expires_at };
  const lines = Array.from({ length: count }, (_, index) => ({
    ...body,
    id: `t-${index}`,
    data: `value ${index}`,
  }));
  // In one request: a thousand at once would be more connections than a server is offered at a time.
  for (const { status } of await bulk(tenant, lines)) assert.equal(status, 201);
}

onBothEngines('The job that removes expired tokens', (engine) => {
  const tenants = tenantsOf(engine);

  test('removes tokens and search terms in batches, and logs each token', async () => {
    const tenant = await tenants();
    const count = batchMin + 10;
    await expiringTokens(tenant, count);
    await tenant.token({ id: 'stays', type: 'token', data: 1, metadata: { k: 'v' } });
    tenant.vault.clock.advance(hour - minute);
    assert.equal(await runJob(tenant.vault, 'expire tokens'), 0);
    tenant.vault.clock.advance(10 * minute);
    assert.equal(await runJob(tenant.vault, 'expire tokens'), count);
    assert.deepEqual(
      (await tenant.rows('tokens')).map((row) => row.token_id),
      ['stays'],
    );
    const terms = await tenant.rows('search_terms');
    assert.deepEqual(new Set(terms.map((row) => row.token_id)), new Set(['stays']));
    const expiries = (await tenant.rows('logs')).filter(({ operation }) => operation === 'expire');
    assert.equal(new Set(expiries.map((entry) => entry.entity_id)).size, count);
    assert.equal(expiries.length, count);
    const [entry] = expiries;
    assert.deepEqual(
      [entry?.message, entry?.actor_type, entry?.actor_id],
      ['Token expired', 'system', null],
    );
    assert.equal(await runJob(tenant.vault, 'expire tokens'), 0);
  });

  test('a server whose clock is a minute ahead removes nothing that another still shows', async (t) => {
    const vault = await startVault(t, engine);
    const ahead = await startVault(t, engine, { place: vault.place });
    const tenant = await newTenant(vault);
    ahead.clock.advance(minute);
    await expiringTokens(tenant, 1);
    vault.clock.advance(hour - minute / 2);
    ahead.clock.advance(hour - minute / 2);
    assert.equal((await ahead.send('GET', '/tokens/t-0', { key: tenant.key })).status, 404);
    await runJob(ahead, 'expire tokens');
    assert.equal((await tenant.send('GET', '/tokens/t-0')).status, 200);
  });

  test('several servers at once remove each token once', async (t) => {
    const vault = await startVault(t, engine);
    const second = await startVault(t, engine, { place: vault.place, clock: vault.clock });
    const tenant = await newTenant(vault);
    const count = keysMax + 1;
    await expiringTokens(tenant, count);
    vault.clock.advance(hour + 10 * minute);
    const done = await Promise.all([
      runJob(vault, 'expire tokens'),
      runJob(second, 'expire tokens'),
      runJob(second, 'expire tokens'),
    ]);
    assert.equal(
      done.reduce((sum, one) => sum + one),
      count,
    );
    assert.deepEqual(await tenant.rows('tokens'), []);
    const expiries = (await tenant.logged()).filter((operation) => operation === 'expire');
    assert.equal(expiries.length, count);
  });

  test('rests after each commit, so long that its rate is kept', async () => {
    const tenant = await tenants();
    const count = 2 * batchMin + 5;
    await expiringTokens(tenant, count);
    tenant.vault.clock.advance(hour + 10 * minute);
    const rests: number[] = [];
    const pause = async (ms: number) => void rests.push(ms);
    await runJob(tenant.vault, 'expire tokens', { timer: { now: () => 0, pause } });
    const rowsOf = (ms: number) => Math.round((ms * rowsPerSecondMax) / 1000);
    assert.deepEqual(rests.map(rowsOf), [batchMin, batchMin, 5]);
  });

  test('asked to stop, ends after the commit under way, and the next run does the rest', async () => {
    const tenant = await tenants();
    await expiringTokens(tenant, batchMin + 1);
    tenant.vault.clock.advance(hour + 10 * minute);
    const stop = new AbortController();
    const pause = async () => stop.abort();
    const options = { timer: { now: () => 0, pause }, stopping: stop.signal };
    assert.equal(await runJob(tenant.vault, 'expire tokens', options), batchMin);
    assert.equal((await tenant.rows('tokens')).length, 1);
    assert.equal(await runJob(tenant.vault, 'expire tokens'), 1);
  });

  test('what expired while no server was up is removed at the next start', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await expiringTokens(tenant, 3);
    await vault.stop();
    vault.clock.advance(hour + 10 * minute);
    // It is given once its jobs have run.
    await startVault(t, engine, { place: vault.place, clock: vault.clock });
    assert.deepEqual(await engine.run(vault.place, 'select * from tokens'), []);
  });
});
