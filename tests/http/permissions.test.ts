/** GET /permissions and GET /application-templates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';
import { routesOf } from '../support/vault.ts';

onBothEngines('what an application may be given', (engine) => {
  const newTenant = tenantsOf(engine);

  test('GET /permissions 200: all of them, or those of one kind of application', async () => {
    const tenant = await newTenant();
    const all = await tenant.send('GET', '/permissions');
    assert.equal(all.status, 200);
    for (const { type, description, application_types } of all.body) {
      assert.match(type, /^[a-z0-9-]+(:[a-z0-9-]+){1,3}$/);
      assert.ok(description.length > 0 && description.length <= 250);
      assert.ok(application_types.length > 0);
    }
    const forPublic = await tenant.send('GET', '/permissions?application_type=public');
    assert.deepEqual(
      forPublic.body.map((one: { type: string }) => one.type),
      ['token:create', 'token:update', 'token-intent:create'],
    );
    assert.deepEqual(await tenant.logged('permission'), ['list', 'list']);
  });

  test('GET /permissions 200: each is needed by a route, and no route needs another', async () => {
    const tenant = await newTenant();
    const needed = new Set((await routesOf(tenant.vault)).map(({ permission }) => permission));
    needed.delete('any key');
    // By requests through proxies.
    needed.add('proxy:invoke');
    const { body } = await tenant.send('GET', '/permissions');
    const offered = body.map((one: { type: string }) => one.type);
    assert.deepEqual(offered.toSorted(), [...needed].sort());
  });

  test('GET /permissions 400 and 401: another kind, another parameter, no key', async () => {
    const tenant = await newTenant();
    assert.equal((await tenant.send('GET', '/permissions?application_type=elements')).status, 400);
    assert.equal((await tenant.send('GET', '/permissions?type=public')).status, 400);
    assert.equal((await tenant.vault.send('GET', '/permissions')).status, 401);
  });

  test('GET /application-templates 200: each can be created as it is', async () => {
    const tenant = await newTenant();
    const { status, body } = await tenant.send('GET', '/application-templates');
    assert.equal(status, 200);
    assert.equal(body.length, 8);
    for (const template of body) {
      const one = await tenant.send('GET', `/application-templates/${template.id}`);
      assert.deepEqual(one.body, template);
      const { name, application_type: type, rules, permissions } = template;
      const created = await tenant.send('POST', '/applications', {
        key: tenant.managementKey,
        body: { name, type, rules, permissions },
      });
      assert.equal(created.status, 201, created.text);
    }
  });

  test('GET /application-templates 401 and 404', async () => {
    const tenant = await newTenant();
    const path = '/application-templates/00000000-0000-4000-8000-000000000000';
    assert.equal((await tenant.vault.send('GET', '/application-templates')).status, 401);
    assert.equal((await tenant.send('GET', path)).status, 404);
  });
});
