/** Lists of resources of which one was altered in the database, outside the vault. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { createProxy } from '../support/proxies.ts';
import { createReactor } from '../support/reactors.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createWebhook } from '../support/webhooks.ts';

interface Listed {
  /** Where it is read and removed by itself. */
  readonly path: string;
  readonly alter: (id: string) => string;
  create(tenant: TestTenant): Promise<{ readonly id: string }>;
}

/** Statements of an attacker who can write to the database. */
const lists: Readonly<Record<string, Listed>> = {
  application: {
    path: '/applications',
    alter: (id) => `update applications set name = 'x' where application_id = '${id}'`,
    create: createApplicationOf,
  },
  proxy: {
    path: '/proxies',
    alter: (id) => `update proxies set name = 'x' where proxy_id = '${id}'`,
    create: createProxy,
  },
  reactor: {
    path: '/reactors',
    alter: (id) => `update reactors set name = 'x' where reactor_id = '${id}'`,
    create: createReactor,
  },
  webhook: {
    path: '/webhooks',
    alter: (id) => `update webhooks set created_at = created_at + 1 where webhook_id = '${id}'`,
    create: createWebhook,
  },
};

async function createApplicationOf(tenant: TestTenant): Promise<{ readonly id: string }> {
  const body = { name: 'n', type: 'private', permissions: ['token:create'] };
  const made = await tenant.send('POST', '/applications', { key: tenant.managementKey, body });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

async function alertsOf(tenant: TestTenant) {
  const logs = await tenant.rows('logs');
  return logs
    .filter(({ operation, message }) => operation === 'list' && message.includes('altered'))
    .map(({ entity_type, entity_id }) => [entity_type, entity_id]);
}

onBothEngines('Lists with an altered row', (engine) => {
  const newTenant = tenantsOf(engine);

  for (const [entity, { path, alter, create }] of Object.entries(lists)) {
    test(`a ${entity} that was altered is left out and reported, and hides no other`, async () => {
      const tenant = await newTenant();
      const manage = (method: string, at: string) =>
        tenant.send(method, at, { key: tenant.managementKey });
      const [kept, altered] = [await create(tenant), await create(tenant)];
      await engine.run(tenant.vault.place, alter(altered.id));
      const list = await manage('GET', path);
      assert.equal(list.status, 200, list.text);
      const ids = list.body.data.map(({ id }: { readonly id: string }) => id);
      assert.ok(ids.includes(kept.id) && !ids.includes(altered.id), list.text);
      assert.deepEqual(await alertsOf(tenant), [[entity, altered.id]]);
      assert.equal((await manage('GET', `${path}/${altered.id}`)).status, 500);
      assert.equal((await manage('DELETE', `${path}/${altered.id}`)).status, 204);
    });
  }

  test('a key that was altered is left out of its application, and reported', async () => {
    const tenant = await newTenant();
    const { id } = await createApplicationOf(tenant);
    const [key] = (await tenant.rows('api_keys')).filter((row) => row.application_id === id);
    await engine.run(
      tenant.vault.place,
      `update api_keys set key_hash = 'x' where key_id = '${key?.key_id}'`,
    );
    const list = await tenant.send('GET', '/applications', { key: tenant.managementKey });
    assert.equal(list.status, 200, list.text);
    const [shown] = list.body.data.filter((one: { readonly id: string }) => one.id === id);
    assert.deepEqual(shown.keys, []);
    assert.deepEqual(await alertsOf(tenant), [['application_key', key?.key_id]]);
  });
});
