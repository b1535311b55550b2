/** People: adding, reading, changing and removing them, their links and their sessions. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { signInPerson } from '../support/people.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';

onBothEngines('people', (engine) => {
  const newTenant = tenantsOf(engine);
  const asAdministrator = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, { key: tenant.managementKey, body });
  const roleOf = async (tenant: TestTenant, key = tenant.key) =>
    (await tenant.send('GET', '/applications/key', { key })).body.id as string;

  test('POST /people 201: a person with the applications as which the person may act', async () => {
    const tenant = await newTenant();
    const role = await roleOf(tenant);
    const body = { name: 'Ada Lovelace', applications: [role] };
    const created = await asAdministrator(tenant, 'POST', '/people', body);
    assert.equal(created.status, 201, created.text);
    assert.deepEqual(created.body.applications, [role]);
    assert.equal(created.headers.get('location'), `/people/${created.body.id}`);
    const read = await asAdministrator(tenant, 'GET', `/people/${created.body.id}`);
    assert.deepEqual(read.body, created.body);
    const list = await asAdministrator(tenant, 'GET', '/people');
    assert.deepEqual(list.body.data, [created.body]);
    assert.deepEqual(await tenant.logged('person'), ['create', 'list', 'read']);
  });

  test('POST and PUT /people 400: no name, no application, and one that is not the tenant’s', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const role = await roleOf(tenant);
    const foreign = await roleOf(other);
    for (const [body, attribute] of [
      [{ name: '', applications: [role] }, 'name'],
      [{ name: 'Ada', applications: [] }, 'applications'],
      [{ name: 'Ada', applications: [role, foreign] }, 'applications.1'],
      [{ name: 'Ada', applications: [randomUUID()] }, 'applications.0'],
      [{ name: 'Ada', applications: [role], admin: true }, 'admin'],
    ] as const) {
      const refused = await asAdministrator(tenant, 'POST', '/people', body);
      assert.equal(refused.status, 400, refused.text);
      assert.deepEqual(Object.keys(refused.body.errors), [attribute]);
    }
    assert.deepEqual(await tenant.rows('people'), []);
  });

  test('people are managed with management keys alone, and only those of the tenant', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const body = { name: 'Ada', applications: [await roleOf(tenant)] };
    assert.equal((await tenant.send('POST', '/people', { body })).status, 403);
    const { id } = (await asAdministrator(tenant, 'POST', '/people', body)).body;
    for (const [method, path] of [
      ['GET', `/people/${id}`],
      ['PUT', `/people/${id}`],
      ['DELETE', `/people/${id}`],
      ['POST', `/people/${id}/links`],
      ['GET', `/people/${id}/sessions`],
    ] as const) {
      const own = { name: 'Ada', applications: [await roleOf(other)] };
      const refused = await asAdministrator(
        other,
        method,
        path,
        method === 'PUT' ? own : undefined,
      );
      assert.equal(refused.status, 404, `${method} ${path}: ${refused.text}`);
    }
    assert.equal((await tenant.rows('people')).length, 1);
  });

  test('PUT /people 200: an application that is left out is taken away, also from an open session', async () => {
    const tenant = await newTenant();
    const role = await roleOf(tenant);
    const management = await roleOf(tenant, tenant.managementKey);
    const person = await signInPerson(tenant.vault.url, tenant.managementKey, {
      applications: [role, management],
    });
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 200);
    const body = { name: 'Ada King', applications: [management] };
    const updated = await asAdministrator(tenant, 'PUT', `/people/${person.id}`, body);
    assert.equal(updated.status, 200, updated.text);
    assert.deepEqual(updated.body.applications, [management]);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
    assert.equal((await person.send(management, 'GET', '/people')).status, 200);
  });

  test('DELETE /people 204: the next request of each session is refused, and links end', async () => {
    const tenant = await newTenant();
    const role = await roleOf(tenant);
    const person = await signInPerson(tenant.vault.url, tenant.managementKey, {
      applications: [role],
    });
    await asAdministrator(tenant, 'POST', `/people/${person.id}/links`);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 200);
    const removed = await asAdministrator(tenant, 'DELETE', `/people/${person.id}`);
    assert.equal(removed.status, 204, removed.text);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
    for (const table of ['people', 'console_sessions', 'console_links'] as const) {
      assert.deepEqual(await tenant.rows(table), [], table);
    }
    assert.equal((await asAdministrator(tenant, 'DELETE', `/people/${person.id}`)).status, 404);
  });

  test('sessions of a person are listed without what they could be used with, and end one by one', async () => {
    const tenant = await newTenant();
    const role = await roleOf(tenant);
    const person = await signInPerson(tenant.vault.url, tenant.managementKey, {
      applications: [role],
    });
    const path = `/people/${person.id}/sessions`;
    const list = await asAdministrator(tenant, 'GET', path);
    assert.equal(list.body.length, 1, list.text);
    assert.ok(!list.text.includes(person.cookie.split('.')[1] ?? '?'));
    const ended = await asAdministrator(tenant, 'DELETE', `${path}/${list.body[0].id}`);
    assert.equal(ended.status, 204, ended.text);
    assert.equal((await person.send(role, 'GET', '/tokens')).status, 401);
    assert.deepEqual((await asAdministrator(tenant, 'GET', path)).body, []);
    assert.equal((await asAdministrator(tenant, 'DELETE', `${path}/${randomUUID()}`)).status, 404);
  });
});
