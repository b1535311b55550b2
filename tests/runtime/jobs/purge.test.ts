/** What nobody can use any more leaves the disk: expired sessions, and all that deleted tenants had. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { batchMin } from '../../../src/runtime/jobs/pace.ts';
import { onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { tenantsOf } from '../../support/tenant.ts';

const minute = 60_000;

onBothEngines('the jobs that remove what is over', (engine) => {
  const newTenant = tenantsOf(engine);

  test('sessions go after they have expired, on any number of them, and live ones stay', async () => {
    const tenant = await newTenant();
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const begin = (count: number) =>
      Promise.all(Array.from({ length: count }, () => tenant.send('POST', '/sessions', { key })));
    await begin(batchMin + 5);
    tenant.vault.clock.advance(4 * minute);
    assert.equal(await runJob(tenant.vault, 'remove sessions'), 0);
    tenant.vault.clock.advance(5 * minute);
    await begin(1);
    assert.equal(await runJob(tenant.vault, 'remove sessions'), batchMin + 5);
    assert.equal((await tenant.rows('sessions')).length, 1);
    const keys = await tenant.rows('api_keys');
    assert.equal(keys.filter((row) => row.session_id !== null).length, 1);
    const expiries = (await tenant.logged('session')).filter((one) => one === 'expire');
    assert.equal(expiries.length, batchMin + 5);
  });

  test('a deleted tenant leaves its log and the note that there was one', async () => {
    const tenant = await newTenant();
    await tenant.token({ type: 'token', data: 'gone' });
    const logged = (await tenant.rows('logs')).length;
    await tenant.send('DELETE', '/tenants/self', { key: tenant.managementKey });
    assert.ok((await runJob(tenant.vault, 'remove deleted tenants')) > 0);
    assert.equal(await runJob(tenant.vault, 'remove deleted tenants'), 0);
    for (const table of ['tokens', 'applications', 'api_keys'] as const) {
      assert.deepEqual(await tenant.rows(table), []);
    }
    assert.ok((await tenant.rows('logs')).length > logged);
    assert.equal((await tenant.rows('tenants')).length, 1);
  });
});
