/** How much of the database calls of reactors may take. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { createReactor, invoker } from '../support/reactors.ts';
import { tenantsOf } from '../support/tenant.ts';

onBothEngines('what is stored of calls of reactors', (engine) => {
  const newTenant = tenantsOf(engine);

  test('429: of one tenant calls take no more bytes than its quota, until results are removed', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const { id } = await createReactor(tenant);
    const sent = { key, body: { args: {} } };
    await tenant.send('POST', `/reactors/${id}/react-async`, sent);
    const [row] = await tenant.rows('reactor_runs');
    assert.ok(row);
    const accept = async () => {
      // Every thread adds up what there is.
      tenant.vault.clock.advance(10_000);
      return tenant.send('POST', `/reactors/${id}/react-async`, sent);
    };
    await tenant.setQuotas({ reactor_storage_limit: 2 * row.body.length - 1 });
    const refused = await accept();
    assert.equal(refused.status, 429, refused.text);
    assert.match(refused.body.detail, /quota reactor_storage_limit/);
    await tenant.setQuotas({ reactor_storage_limit: 2 * row.body.length });
    assert.equal((await accept()).status, 202);
    assert.equal((await accept()).status, 429);
    const { reactorRuns } = tenant.vault.running.vault;
    await reactorRuns?.look();
    await reactorRuns?.settled();
    tenant.vault.clock.advance(25 * hour);
    await runJob(tenant.vault, 'remove results of reactors');
    assert.equal((await accept()).status, 202);
  });

  test('a call that would exceed the quota of stored bytes is answered, and its log is not stored', async () => {
    const tenant = await newTenant();
    const key = await invoker(tenant);
    const code = "module.exports = () => { console.log('x'); return {} }";
    const { id } = await createReactor(tenant, { code });
    const call = () => tenant.send('POST', `/reactors/${id}/react`, { key, body: {} });
    await tenant.setQuotas({ reactor_storage_limit: 0 });
    assert.equal((await call()).status, 200);
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
    await tenant.setQuotas({ reactor_storage_limit: 100_000 });
    assert.equal((await call()).status, 200);
    assert.equal((await tenant.rows('reactor_runs')).length, 1);
  });
});
