/** What is kept of keys and tenants: bounded, and never what was forgotten. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createAuthentication } from '../../src/access/authenticate.ts';
import { createTenants } from '../../src/access/tenants/tenants.ts';
import { createEpochs } from '../../src/base/epochs.ts';
import { hashApiKey } from '../../src/keys/api-key.ts';
import type { Store } from '../../src/store/store.ts';
import { onBothEngines } from '../support/engines.ts';
import { newTenant, untilUsed } from '../support/tenant.ts';
import { startVault } from '../support/vault.ts';

const origin = { address: '127.0.0.1', traceId: 'trace', dialect: 'SVC' };
const hour = 3_600_000;

/** The store, whose caches learn of a commit at a moment that the test chooses. */
function withOwnEpochs(store: Store) {
  const epochs = createEpochs();
  return { observed: { ...store, epochs }, advance: epochs.advance };
}

onBothEngines('caches', (engine) => {
  test('a key that is removed while it is looked up is not known afterwards', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const { store, tenants } = vault.running.vault;
    const { clock } = vault;
    const onFailure = async () => undefined;
    const { observed, advance } = withOwnEpochs(store);
    const authenticate = createAuthentication({ store: observed, tenants, clock, onFailure });
    const [entry] = await tenant.rows('logs');
    assert.ok(entry);
    const key_hash = hashApiKey(tenant.key);
    const stored = () => store.get('api_keys', { key_hash });
    await authenticate(tenant.key, origin);
    await untilUsed(tenant, tenant.key);
    const row = await stored();
    assert.ok(row);
    clock.advance(1000);
    const removal = { remove: { api_keys: [row] }, entries: [entry] } as const;
    const underWay = authenticate(tenant.key, origin);
    advance('access');
    assert.equal((await underWay).tenant.id, tenant.id);
    assert.deepEqual(await store.commit(removal), {});
    await assert.rejects(async () => authenticate(tenant.key, origin), { code: 'unauthenticated' });
  });

  /** A tenant, and a cache of tenants whose epochs only the test advances. */
  async function tenantWithOwnEpochs(t: TestContext) {
    const vault = await startVault(t, engine);
    const { id } = await newTenant(vault);
    const { store, vaultKeys, random } = vault.running.vault;
    const { clock } = vault;
    const { observed, advance } = withOwnEpochs(store);
    const tenants = createTenants({ store: observed, vaultKeys, clock, random });
    return { id, clock, tenants, advance };
  }

  test('an opened keyring is kept for an hour at most, also while its tenant changes', async (t) => {
    const { id, clock, tenants, advance } = await tenantWithOwnEpochs(t);
    const ring = async () => (await tenants.find(id))?.keyring;
    const first = await ring();
    clock.advance(hour / 2);
    assert.equal(await ring(), first);
    advance('tenants');
    assert.equal(await ring(), first, 'its keys did not change');
    clock.advance(hour / 2);
    const second = await ring();
    assert.ok(second && second !== first);
  });

  test('all who look for a tenant at once share one reading, but for those after a change', async (t) => {
    const { id, tenants, advance } = await tenantWithOwnEpochs(t);
    const before = Array.from({ length: 100 }, () => tenants.find(id));
    advance('tenants');
    const after = Array.from({ length: 100 }, () => tenants.find(id));
    const [one, ...others] = await Promise.all(before);
    assert.ok(one && others.every((other) => other === one));
    const [changed, ...rest] = await Promise.all(after);
    assert.ok(changed && changed !== one && rest.every((other) => other === changed));
  });
});
