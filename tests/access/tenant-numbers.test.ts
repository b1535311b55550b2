/** Rows name their tenant by a number that follows from its id, so no two tenants may share one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTenantWithKey } from '../../src/access/tenants/bootstrap.ts';
import { createTenants } from '../../src/access/tenants/tenants.ts';
import type { Random } from '../../src/base/random.ts';
import { tenantNumber } from '../../src/store/stored-form.ts';
import { onBothEngines } from '../support/engines.ts';
import { startVault } from '../support/vault.ts';

onBothEngines('a tenant whose id begins like that of another', (engine) => {
  test('is created under another id', async (t) => {
    const vault = await startVault(t, engine);
    const { tenants: stored, ...tools } = vault.running.vault;
    const [first] = await stored.all();
    assert.ok(first);
    const taken = Buffer.from(first.tenant_id.slice(0, 8), 'hex');
    const drawn: string[] = [];
    const random: Random = (length) => {
      const bytes = tools.random(length);
      if (length === 16 && drawn.length === 0) taken.copy(bytes);
      if (length === 16) drawn.push(bytes.toString('hex', 0, 4));
      return bytes;
    };
    const tenants = createTenants({ ...tools, random });
    const settings = { tenant: 'second', type: 'test', key: undefined } as const;
    const { tenant } = await createTenantWithKey({ ...tools, tenants }, settings);
    assert.equal(drawn[0], first.tenant_id.slice(0, 8), 'the first draw was the number of another');
    assert.notEqual(tenantNumber(tenant.id), tenantNumber(first.tenant_id));
    assert.deepEqual(new Set((await stored.all()).map(({ name }) => name)).has('second'), true);
  });
});
