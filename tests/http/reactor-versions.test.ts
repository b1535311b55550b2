/** GET /reactors/{id}/versions: the code that a reactor had before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../src/base/clock.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock } from '../support/vault.ts';

const code = (text: string) => `module.exports = async () => ({ raw: '${text}' });`;

onBothEngines('the versions of a reactor', (engine) => {
  const newTenant = tenantsOf(engine, {
    clock: createStillClock(),
    environment: { STRONGROOM_REACTORS: 'on' },
  });
  const manage = (tenant: TestTenant, method: string, path: string, body?: unknown) =>
    tenant.send(method, path, {
      key: tenant.managementKey,
      body,
      ...(method === 'PATCH' && { headers: { 'content-type': 'application/merge-patch+json' } }),
    });

  async function newReactor(tenant: TestTenant): Promise<string> {
    const made = await manage(tenant, 'POST', '/reactors', { name: 'r', code: code('first') });
    assert.equal(made.status, 201, made.text);
    return `/reactors/${made.body.id}`;
  }

  async function write(tenant: TestTenant, path: string, body: object): Promise<void> {
    const { status, text } = await manage(tenant, 'PATCH', path, body);
    assert.equal(status, 204, text);
    tenant.vault.clock.advance(1);
  }

  async function versionsOf(tenant: TestTenant, path: string, query = '') {
    const { status, body, text } = await manage(tenant, 'GET', `${path}/versions${query}`);
    assert.equal(status, 200, text);
    return body;
  }

  const codesIn = (list: { readonly data: readonly { readonly code: string }[] }) =>
    list.data.map((one) => one.code);

  test('GET 200: whenever the code changes, the code before is kept, newest first', async () => {
    const tenant = await newTenant();
    const path = await newReactor(tenant);
    assert.deepEqual(codesIn(await versionsOf(tenant, path)), []);
    await write(tenant, path, { code: code('second') });
    await write(tenant, path, { name: 'another name' });
    const put = { name: 'r', code: code('third') };
    assert.equal((await manage(tenant, 'PUT', path, put)).status, 200);
    tenant.vault.clock.advance(1);
    const list = await versionsOf(tenant, path);
    assert.deepEqual(codesIn(list), [code('second'), code('first')]);
    const management = await manage(tenant, 'GET', '/applications/key');
    assert.equal(list.data[0].replaced_by, management.body.id);
    // Going back is a change like any other.
    await write(tenant, path, { code: code('first') });
    assert.deepEqual(codesIn(await versionsOf(tenant, path))[0], code('third'));
    assert.ok((await tenant.logged('reactor')).includes('read'));
  });

  test('GET 200: page by page, and none of them is among the logs or the results', async () => {
    const tenant = await newTenant();
    const path = await newReactor(tenant);
    for (const text of ['second', 'third']) await write(tenant, path, { code: code(text) });
    const first = await versionsOf(tenant, path, '?size=1');
    const start = encodeURIComponent(first.pagination.next);
    const second = await versionsOf(tenant, path, `?size=1&start=${start}`);
    assert.deepEqual([...codesIn(first), ...codesIn(second)], [code('second'), code('first')]);
    assert.equal(second.pagination.next, undefined);
    assert.deepEqual((await manage(tenant, 'GET', `${path}/logs`)).body.data, []);
    const result = await tenant.send('GET', `${path}/results/${first.data[0].id}`);
    assert.equal(result.status, 404);
  });

  test('a version goes after 90 days, and with its reactor', async () => {
    const tenant = await newTenant();
    const [kept, deleted] = [await newReactor(tenant), await newReactor(tenant)];
    for (const path of [kept, deleted]) await write(tenant, path, { code: code('second') });
    assert.equal((await manage(tenant, 'DELETE', deleted)).status, 204);
    assert.equal((await tenant.rows('reactor_runs')).length, 1);
    tenant.vault.clock.advance(89 * day);
    assert.equal((await versionsOf(tenant, kept)).data.length, 1);
    tenant.vault.clock.advance(day);
    assert.deepEqual((await versionsOf(tenant, kept)).data, []);
    tenant.vault.clock.advance(day);
    await runJob(tenant.vault, 'remove results of reactors');
    assert.deepEqual(await tenant.rows('reactor_runs'), []);
  });

  test('without room for it no version is kept, and the change is made all the same', async () => {
    const tenant = await newTenant();
    const path = await newReactor(tenant);
    await tenant.setQuotas({ reactor_storage_limit: 0 });
    await write(tenant, path, { code: code('second') });
    assert.deepEqual((await versionsOf(tenant, path)).data, []);
    assert.equal((await manage(tenant, 'GET', path)).body.code, code('second'));
  });

  test('GET 403 and 404: without reactor:read, and for a reactor of another tenant', async () => {
    const [tenant, other] = [await newTenant(), await newTenant()];
    const path = await newReactor(tenant);
    const key = await tenant.application({ type: 'management', permissions: ['reactor:update'] });
    assert.equal((await tenant.send('GET', `${path}/versions`, { key })).status, 403);
    assert.equal((await manage(other, 'GET', `${path}/versions`)).status, 404);
  });
});
