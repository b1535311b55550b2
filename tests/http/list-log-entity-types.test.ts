/** GET /logs/entity-types. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { tenantsOf } from '../support/tenant.ts';

const path = '/logs/entity-types';

onBothEngines('GET /logs/entity-types', (engine) => {
  const tenants = tenantsOf(engine);

  test('200: the plain list of types, by name, with those that clients know', async () => {
    const tenant = await tenants();
    const answer = await tenant.send('GET', path, { key: tenant.managementKey });
    assert.equal(answer.status, 200);
    const names = answer.body.map((type: { display_name: string }) => type.display_name);
    assert.deepEqual(names, [...names].sort());
    const values = answer.body.map((type: { value: string }) => type.value);
    const known =
      'application application_key bank card proxy reactor session tenant token token_intent webhook';
    for (const value of known.split(' ')) assert.ok(values.includes(value), value);
    for (const absent of ['tenant_member', 'tenant_invitation']) {
      assert.equal(values.includes(absent), false, absent);
    }
    assert.deepEqual(answer.body[names.indexOf('Application')], {
      display_name: 'Application',
      value: 'application',
    });
    assert.deepEqual(await tenant.logged('log'), ['list']);
  });

  test('200: every type that an entry has is in the list', async () => {
    const tenant = await tenants();
    await tenant.token({ type: 'token', data: 'x' });
    const answer = await tenant.send('GET', path, { key: tenant.managementKey });
    const values = new Set(answer.body.map((type: { value: string }) => type.value));
    for (const { entity_type } of await tenant.rows('logs')) assert.ok(values.has(entity_type));
  });

  test('401: without a key', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.vault.send('GET', path)).status, 401);
  });

  test('403: without log:read; logged as denied', async () => {
    const tenant = await tenants();
    assert.equal((await tenant.send('GET', path)).status, 403);
    assert.deepEqual(await tenant.logged('log'), ['read denied']);
  });
});
