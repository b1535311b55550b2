/** Rotating the keys of a tenant: nothing is lost, missed or doubled, and nothing remains under the keys before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { destroyKey } from '../../src/access/key-rotations/destroy.ts';
import { listTenantKeys } from '../../src/access/key-rotations/key-list.ts';
import { beginRotation } from '../../src/access/key-rotations/rotation.ts';
import { tenantRowOf } from '../../src/access/tenants/read.ts';
import type { Operator } from '../../src/rules/caller.ts';
import { perform } from '../../src/rules/operation.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import type { RotatedPurpose } from '../../src/store/key-tables.ts';
import { onBothEngines } from '../support/engines.ts';
import { startVault, type TestVault } from '../support/vault.ts';

async function operatorOf({ running: { vault } }: TestVault): Promise<Operator> {
  const [row] = await vault.tenants.all();
  const tenant = row && (await vault.tenants.find(row.tenant_id));
  assert(tenant);
  return { tenant, application: null };
}

async function begin(vault: TestVault, purpose: RotatedPurpose): Promise<void> {
  const { vault: parts } = vault.running;
  const actor = await operatorOf(vault);
  await perform({ store: parts.store, actor }, beginRotation(parts, actor, purpose));
}

async function rotate(vault: TestVault, purpose: RotatedPurpose): Promise<void> {
  await begin(vault, purpose);
  const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
  await job.run(new AbortController().signal);
}

async function keysOf(vault: TestVault) {
  const { vault: parts } = vault.running;
  const { tenant } = await operatorOf(vault);
  return listTenantKeys(parts, await tenantRowOf(parts.tenants, tenant));
}

async function destroy(
  vault: TestVault,
  purpose: 'data' | 'search' | 'fingerprint',
  version: number,
) {
  const { vault: parts } = vault.running;
  const actor = await operatorOf(vault);
  return perform({ store: parts.store, actor }, destroyKey(parts, actor, { purpose, version }));
}

const cards = ['4242424242424242', '5555555555554444', '378282246310005'];

onBothEngines('rotation of keys', (engine) => {
  for (const purpose of ['data', 'search', 'fingerprint'] as const) {
    test(`after a rotation of ${purpose} keys all is found once, and the old key can be destroyed`, async (t) => {
      const vault = await startVault(t, engine);
      const key = await vault.application();
      const create = (number: string) =>
        vault.send('POST', '/tokens', {
          key,
          body: {
            type: 'card',
            data: { number, expiration_month: 12, expiration_year: 2030, cvc: '123' },
            metadata: { shop: 'north' },
            search_indexes: ['{{ data.number }}'],
            deduplicate_token: true,
          },
        });
      const ids: string[] = [];
      for (const number of cards) ids.push((await create(number)).body.id);
      await rotate(vault, purpose);
      for (const [index, number] of cards.entries()) {
        const read = await vault.send('GET', `/tokens/${ids[index]}`, { key });
        assert.equal(read.status, 200, read.text);
        assert.equal(read.body.data.number, number);
        const found = await vault.send('POST', '/tokens/search', {
          key,
          body: { query: `data:${number}` },
        });
        assert.deepEqual(
          found.body.data.map(({ id }: { id: string }) => id),
          [ids[index]],
        );
        const again = await create(number);
        assert.equal(again.body.id, ids[index], again.text);
      }
      const keys = await keysOf(vault);
      const before = keys.find((one) => one.purpose === purpose && one.version === 1);
      const after = keys.find((one) => one.purpose === purpose && one.version === 2);
      assert.equal(before?.state, 'decrypt_only');
      assert.equal(before?.rows, 0, JSON.stringify(keys));
      assert.equal(after?.state, 'active');
      assert(Number(after?.rows) >= cards.length);
      await destroy(vault, purpose, 1);
      for (const id of ids) {
        assert.equal((await vault.send('GET', `/tokens/${id}`, { key })).status, 200);
      }
      await assert.rejects(destroy(vault, purpose, 2), /active/);
    });
  }
});
