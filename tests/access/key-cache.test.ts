/** Keys of tenants that a service unwraps: each is asked for once, and a failure concerns its tenant alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { destroyKey } from '../../src/access/key-rotations/destroy.ts';
import { beginRotation } from '../../src/access/key-rotations/rotation.ts';
import { createKeyCache, keyUnavailable } from '../../src/access/keyrings/key-cache.ts';
import { openVaultKeys } from '../../src/access/keyrings/open-vault-keys.ts';
import { rotateRoot } from '../../src/access/keyrings/rotate-root.ts';
import { createTenants } from '../../src/access/tenants/tenants.ts';
import { day, hour, minute, second } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { newWrappingKey, type RootKey } from '../../src/keys/root/root-key.ts';
import type { RootKeys } from '../../src/keys/root/sources.ts';
import { type KeyHeader, readStored } from '../../src/keys/root/wrapped.ts';
import { perform } from '../../src/rules/operation.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import { unverifiedColumns } from '../../src/store/stored-row.ts';
import { onBothEngines } from '../support/engines.ts';
import { nextLook } from '../support/poll.ts';
import { newTenant } from '../support/tenant.ts';
import { createStillClock, startVault, type TestVault } from '../support/vault.ts';

const random = pooledRandom();

const header: KeyHeader = {
  vault: 'vault',
  generation: 1,
  source: 'a service',
  keyId: 'key',
  version: 1,
  blob: new Uint8Array([1]),
};

/** The root key of a vault, counted as a service would count its calls; and it can fail. */
function counted({ running }: TestVault) {
  const { roots } = running.vault;
  const calls: string[] = [];
  const wrappings: string[] = [];
  const service = { isDown: false, deniedTenant: '' };
  const counting: RootKey = {
    ...roots.chosen,
    wrap: async (key, context) => {
      wrappings.push(context.tenant);
      return roots.chosen.wrap(key, context);
    },
    unwrap: async (wrapped, context) => {
      calls.push(context.tenant);
      if (service.isDown || (context.tenant !== '' && context.tenant === service.deniedTenant)) {
        throw keyUnavailable('the service does not respond');
      }
      return roots.chosen.unwrap(wrapped, context);
    },
  };
  const all: RootKeys = {
    ...roots,
    chosen: counting,
    named: async () => counting,
    unwrapping: async () => counting,
  };
  return { calls, wrappings, service, roots: all };
}

onBothEngines('a vault whose root key is a service', (engine) => {
  test('asks it once at a start, however many tenants there are, and once for each tenant that is used', async (t) => {
    const vault = await startVault(t, engine);
    const first = (await newTenant(vault)).id;
    const other = (await newTenant(vault)).id;
    const third = (await newTenant(vault)).id;
    const { store } = vault.running.vault;
    const { clock } = vault;
    const { calls, service, roots } = counted(vault);
    const { vaultKeys } = await openVaultKeys({ store, roots, clock, random });
    // Proving the row and opening it.
    assert.ok(calls.every((tenant) => tenant === ''));
    assert.ok(calls.length <= 2);
    calls.length = 0;
    const tenants = createTenants({ store, vaultKeys, clock, random, cachedMax: 1 });
    await Promise.all(Array.from({ length: 50 }, () => tenants.find(first)));
    assert.deepEqual(calls, [first], 'concurrent first uses share one call');
    for (let round = 0; round < 5; round++) {
      // Caches of keyrings hold one tenant, and an hour ends their entries.
      clock.advance(hour);
      for (const used of [first, other]) assert.ok(await tenants.find(used));
    }
    assert.deepEqual(calls, [first, other]);

    service.isDown = true;
    clock.advance(day);
    for (const used of [first, other]) assert.ok(await tenants.find(used), 'known keys go on');
    await assert.rejects(tenants.find(third), { code: 'unavailable' });
    service.isDown = false;
    clock.advance(minute);
    assert.ok(await tenants.find(third), 'it recovers without a restart');
  });

  test('is not asked by rotations of the keys of a tenant, nor when a key is destroyed', async (t) => {
    const vault = await startVault(t, engine);
    const { id } = await newTenant(vault);
    const { calls, wrappings, roots } = counted(vault);
    const { vault: parts } = vault.running;
    const { vaultKeys } = await openVaultKeys({ ...parts, roots, clock: vault.clock, random });
    const tenants = createTenants({ ...parts, vaultKeys, clock: vault.clock, random });
    const tools = { ...parts, vaultKeys, tenants, clock: vault.clock, random };
    const stored = async () => {
      const row = await tenants.row(id);
      assert.ok(row);
      return readStored(unverifiedColumns(row).keyring)?.header;
    };
    const before = await stored();
    for (const purpose of ['data', 'search', 'fingerprint', 'webhooks', 'log'] as const) {
      const tenant = await tenants.find(id);
      assert.ok(tenant);
      const actor = { tenant, application: null };
      await perform({ store: parts.store, actor }, beginRotation(tools, actor, purpose));
      const job = rotateTenantKeys({ ...tools, isAlone: () => true });
      await job.run(new AbortController().signal);
      vault.clock.advance(second);
    }
    const tenant = await tenants.find(id);
    assert.ok(tenant);
    assert.equal(tenant.keyring.versions.data.length, 4, 'each of them has ended');
    assert.equal(tenant.keyring.versions.audit.length, 2);
    const actor = { tenant, application: null };
    const named = { purpose: 'data', version: 1 } as const;
    await perform({ store: parts.store, actor }, destroyKey(tools, actor, named));
    const ofTenants = (asked: readonly string[]) => asked.filter((tenant) => tenant !== '');
    assert.deepEqual(ofTenants(calls), [id], 'its first use');
    assert.deepEqual(ofTenants(wrappings), []);

    // A server that follows knows the key-encryption key already.
    const after = await stored();
    assert.ok(before && after);
    const { keyring: _before, ...sameKey } = before;
    const { keyring: _after, ...key } = after;
    assert.deepEqual(key, sameKey);

    await rotateRoot({ ...tools, roots });
    assert.deepEqual(
      ofTenants(wrappings).sort(),
      (await tenants.all()).map(({ tenant_id }) => tenant_id).sort(),
      'once for each tenant',
    );
    assert.notDeepEqual((await stored())?.blob, before.blob);
  });

  test('503 for a tenant whose key cannot be unwrapped, and for no other', async (t) => {
    const clock = createStillClock();
    const vault = await startVault(t, engine, { clock });
    const [one, other] = [await newTenant(vault), await newTenant(vault)];
    const { store } = vault.running.vault;
    const { calls, service, roots } = counted(vault);
    const { vaultKeys } = await openVaultKeys({ store, roots, clock, random });
    service.deniedTenant = one.id;
    const tenants = createTenants({ store, vaultKeys, clock, random });
    await assert.rejects(tenants.find(one.id), { code: 'unavailable' });
    assert.ok(await tenants.find(other.id));
    calls.length = 0;
    for (let attempt = 0; attempt < 20; attempt++) {
      await assert.rejects(tenants.find(one.id), { code: 'unavailable' });
    }
    assert.deepEqual(calls, [], 'the next attempt waits');
  });
});

test('keys of hundreds of tenants that are needed at one moment are all unwrapped, few at a time', async () => {
  let running = 0;
  let most = 0;
  const cache = createKeyCache({
    clock: createStillClock(),
    unwrap: async () => {
      running += 1;
      most = Math.max(most, running);
      await nextLook();
      running -= 1;
      return newWrappingKey(random);
    },
  });
  const tenants = Array.from({ length: 500 }, (_, at) => `tenant ${at}`);
  await Promise.all(tenants.map((tenant) => cache.get(tenant, header)));
  assert.equal(most, 64);
});

test('attempts after failures become rare, and a repaired row is tried at once', async () => {
  const clock = createStillClock();
  let asked = 0;
  const cache = createKeyCache({
    clock,
    unwrap: async (_tenant, { blob }) => {
      asked += 1;
      if (blob[0] === 1) throw keyUnavailable('throttled');
      return newWrappingKey(random);
    },
  });
  for (let at = 0; at < 10 * 60; at++) {
    await assert.rejects(cache.get('tenant', header), { code: 'unavailable' });
    clock.advance(second);
  }
  assert.ok(asked > 15 && asked < 40, `${asked} attempts in ten minutes`);
  assert.ok(await cache.get('tenant', { ...header, blob: new Uint8Array([2]) }));
});
