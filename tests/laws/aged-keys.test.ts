/** Data keys by age: each month a new one for what is written, and after a year nothing is under an old one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listTenantKeys } from '../../src/access/key-rotations/key-list.ts';
import { newRotation } from '../../src/access/key-rotations/rotation.ts';
import { tenantRowOf } from '../../src/access/tenants/read.ts';
import { day, parseInstant } from '../../src/base/clock.ts';
import {
  type DataKeyAges,
  dataKeyAgesDefault,
  renewAgedKeys,
} from '../../src/runtime/jobs/renew-aged-keys.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock } from '../support/vault.ts';

const { keyPeriodMs, keyMaxAgeMs } = dataKeyAgesDefault;

onBothEngines('data keys by age', (engine) => {
  const tenants = tenantsOf(engine, { clock: createStillClock() });

  async function dataKeys({ id, vault }: TestTenant) {
    const parts = vault.running.vault;
    const tenant = await parts.tenants.find(id);
    assert(tenant);
    const keys = await listTenantKeys(parts, await tenantRowOf(parts.tenants, tenant));
    return keys
      .filter(({ purpose }) => purpose === 'data')
      .map(({ version, state, rows }) => [version, state, rows]);
  }

  /** Lets time pass, and everything that is due then happen. */
  async function after(ms: number, { vault }: TestTenant): Promise<void> {
    vault.clock.advance(ms);
    await runJob(vault, 'renew aged keys');
    const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
    await job.run(new AbortController().signal);
    vault.clock.advance(1000);
  }

  test('a month has a new key, which seals nothing again, and a year seals all rows again', async () => {
    const tenant = await tenants();
    await tenant.token({ id: 'first', type: 'token', data: 'one' });
    await after(keyPeriodMs - 60_000, tenant);
    assert.deepEqual(await dataKeys(tenant), [[1, 'active', 1]]);
    await after(120_000, tenant);
    assert.deepEqual(await dataKeys(tenant), [
      [1, 'decrypt_only', 1],
      [2, 'active', 0],
    ]);
    await tenant.token({ id: 'second', type: 'token', data: 'two' });
    assert.deepEqual(await dataKeys(tenant), [
      [1, 'decrypt_only', 1],
      [2, 'active', 1],
    ]);
    await after(60_000, tenant);
    assert.equal((await dataKeys(tenant)).length, 2, 'once a month');
    await after(keyMaxAgeMs, tenant);
    const keys = await dataKeys(tenant);
    assert.deepEqual(keys.at(-1), [3, 'active', 2]);
    assert.deepEqual(
      keys.slice(0, -1).map(([, , rows]) => rows),
      [0, 0],
    );
    for (const [id, data] of Object.entries({ first: 'one', second: 'two' })) {
      assert.equal((await tenant.send('GET', `/tokens/${id}`)).body.data, data);
    }
    assert.deepEqual(await tenant.logged('keyring'), [
      ...['activate', 'activate', 'finish', 'introduce', 'introduce', 'reseal', 'rotate', 'rotate'],
    ]);
  });

  test('the operator sets the period and the age, or switches them off', async () => {
    const tenant = await tenants();
    await tenant.token({ type: 'token', data: 'one' });
    const renew = async (ages: Partial<DataKeyAges>) => {
      const job = renewAgedKeys(tenant.vault.running.vault, { ...dataKeyAgesDefault, ...ages });
      await job.run(new AbortController().signal);
      const rotations = await tenant.rows('key_rotations');
      // Machines of a distributed database give them in any order.
      return rotations.map(({ purpose }) => purpose).sort();
    };
    tenant.vault.clock.advance(10 * day);
    assert.deepEqual(await renew({ keyPeriodMs: 11 * day }), []);
    const off = Number.POSITIVE_INFINITY;
    assert.deepEqual(await renew({ keyPeriodMs: off, keyMaxAgeMs: off }), []);
    assert.deepEqual(await renew({ keyPeriodMs: 10 * day }), ['period']);
    assert.deepEqual(await renew({ keyPeriodMs: off, keyMaxAgeMs: 10 * day }), ['data', 'period']);
  });

  test('an attacker who alters rows of rotations neither delays a rotation nor has one repeated', async () => {
    const tenant = await tenants();
    const { id, vault } = tenant;
    const { store } = vault.running.vault;
    await tenant.token({ id: 'kept', type: 'token', data: 'one' });
    const alter = async (startedAt: number) => {
      const key = { tenant_id: id, purpose: 'data' } as const;
      const before = await store.get('key_rotations', key);
      const begun = newRotation({ ...key, now: parseInstant(startedAt) });
      const revision = (before?.revision ?? 0) + 1;
      await store.record({
        ...(before && { remove: { key_rotations: [key] } }),
        insert: { key_rotations: [{ ...begun, phase: 'finished', revision }] },
      });
    };
    await alter(vault.clock.now() + 2 * keyMaxAgeMs);
    await after(keyPeriodMs, tenant);
    assert.equal((await dataKeys(tenant)).length, 2, 'the new key of a month');
    await after(keyMaxAgeMs, tenant);
    const all = await dataKeys(tenant);
    // The row says that a rotation of this purpose has finished, and the keyring that none did.
    assert.deepEqual(all.at(-1), [3, 'active', 1]);
    await alter(0);
    await after(0, tenant);
    await alter(0);
    await after(0, tenant);
    assert.deepEqual(await dataKeys(tenant), all, 'it is not repeated');
  });

  test('the receipt of an erased token names the key of its month', async () => {
    const tenant = await tenants();
    await after(keyPeriodMs + 1000, tenant);
    await tenant.token({ id: 'later', type: 'token', data: 'one' });
    await tenant.send('DELETE', '/tokens/later');
    const { body } = await tenant.send('GET', '/tokens/later/erasure');
    const [key] = body.keys;
    assert.deepEqual([key.version, key.state], [2, 'active']);
    assert.equal(Date.parse(key.due_at), Date.parse(key.created_at) + keyMaxAgeMs);
  });
});
