/** /applications/{id}/keys: several keys at once, so that keys change without a gap. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entriesIn } from '../support/blocks.ts';
import { onBothEngines } from '../support/engines.ts';
import { type TestTenant, tenantsOf } from '../support/tenant.ts';
import { managementKey, startVault } from '../support/vault.ts';

const missing = '00000000-0000-4000-8000-000000000000';

onBothEngines('keys of applications', (engine) => {
  const newTenant = tenantsOf(engine);

  const create = async (tenant: TestTenant, given = {}) => {
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['token:create'], ...given },
    });
    assert.equal(created.status, 201, created.text);
    return created.body;
  };
  const manage = (tenant: TestTenant, method: string, path: string) =>
    tenant.send(method, path, { key: tenant.managementKey });
  const works = async (tenant: TestTenant, key: string) =>
    (await tenant.send('GET', '/applications/key', { key })).status === 200;

  test('POST 201: a new key works beside the old one, until that is deleted', async () => {
    const tenant = await newTenant();
    const { id, key: old, keys } = await create(tenant);
    const created = await manage(tenant, 'POST', `/applications/${id}/keys`);
    assert.equal(created.status, 201);
    const { key, ...shown } = created.body;
    assert.match(key, /^key_test_pvt_[0-9A-Za-z]{49}$/);
    const path = `/applications/${id}/keys/${shown.id}`;
    assert.equal(created.headers.get('location'), path);
    assert.ok(await works(tenant, old));
    assert.ok(await works(tenant, key));
    const read = await manage(tenant, 'GET', path);
    assert.equal(read.status, 200);
    assert.ok(!read.text.includes(key));
    const { last_used_at: _used, ...rest } = read.body;
    assert.deepEqual(rest, shown);
    const deleted = await manage(tenant, 'DELETE', `/applications/${id}/keys/${keys[0].id}`);
    assert.equal(deleted.status, 204);
    assert.equal(await works(tenant, old), false);
    assert.ok(await works(tenant, key));
    assert.deepEqual(
      (await tenant.logged('application_key')).filter((one) => one !== 'use'),
      ['create', 'create', 'create', 'delete', 'read'],
    );
  });

  test('POST 201: for an application created without a key', async () => {
    const tenant = await newTenant();
    const { id, key, keys } = await create(tenant, { create_key: false, type: 'public' });
    assert.deepEqual([key, keys], [undefined, []]);
    const created = await manage(tenant, 'POST', `/applications/${id}/keys`);
    assert.match(created.body.key, /^key_test_pub_/);
  });

  test('POST 422: a fourth key, also when ten are asked for at once', async () => {
    const tenant = await newTenant();
    const { id } = await create(tenant);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => manage(tenant, 'POST', `/applications/${id}/keys`)),
    );
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, 201, ...Array(8).fill(422)]);
    const refused = answers.find(({ status }) => status === 422);
    assert.match(refused?.body.detail, /at most 3 keys/);
    const list = await manage(tenant, 'GET', `/applications/${id}/keys`);
    assert.equal(list.body.length, 3);
    await manage(tenant, 'DELETE', `/applications/${id}/keys/${list.body[0].id}`);
    assert.equal((await manage(tenant, 'POST', `/applications/${id}/keys`)).status, 201);
  });

  test('POST 422: a fourth key, also when two servers are asked at once', async (t) => {
    const one = await startVault(t, engine);
    const other = await startVault(t, engine, { place: one.place, clock: one.clock });
    const key = managementKey;
    const body = { name: 'a', type: 'private', permissions: ['token:create'] };
    const { id } = (await one.send('POST', '/applications', { key, body })).body;
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        (index % 2 === 0 ? one : other).send('POST', `/applications/${id}/keys`, { key }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 201).length, 2);
    assert.ok(answers.every(({ status }) => [201, 422].includes(status)));
  });

  test('GET 200: a plain array without any text of a key, filtered by id and type', async () => {
    const tenant = await newTenant();
    const { id, key, keys } = await create(tenant);
    const second = (await manage(tenant, 'POST', `/applications/${id}/keys`)).body;
    const list = await manage(tenant, 'GET', `/applications/${id}/keys`);
    assert.equal(list.status, 200);
    assert.deepEqual(
      list.body.map((one: { id: string }) => one.id).sort(),
      [keys[0].id, second.id].sort(),
    );
    assert.ok(!list.text.includes(key) && !list.text.includes(second.key));
    const filtered = async (query: string) =>
      (await manage(tenant, 'GET', `/applications/${id}/keys?${query}`)).body.map(
        (one: { id: string }) => one.id,
      );
    assert.deepEqual(await filtered(`id=${second.id}`), [second.id]);
    assert.deepEqual(await filtered(`id=${missing}`), []);
    assert.equal((await filtered('type=private&type=public')).length, 2);
    assert.deepEqual(await filtered('type=public'), []);
  });

  test('GET 200: when a key was last used is known to the hour and logged once for each', async (t) => {
    const vault = await startVault(t, engine);
    const management = managementKey;
    const body = { name: 'a', type: 'private', permissions: ['token:create'] };
    const { id, key, keys } = (await vault.send('POST', '/applications', { key: management, body }))
      .body;
    const path = `/applications/${id}/keys/${keys[0].id}`;
    const lastUsed = async () =>
      (await vault.send('GET', path, { key: management })).body.last_used_at;
    const uses = async () =>
      (await entriesIn(vault.running.vault.store)).filter(
        (entry) => entry.operation === 'use' && entry.entity_id === keys[0].id,
      );
    assert.equal(await lastUsed(), undefined);
    const use = async (times: number) => {
      const answers = Array.from({ length: times }, () =>
        vault.send('GET', '/applications/key', { key }),
      );
      for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
    };
    // The note is nobody's to wait for, so it is asked for until it is there.
    const changedFrom = async (before: string | undefined) => {
      for (let asked = 0; asked < 1000; asked++) {
        const now = await lastUsed();
        if (now !== before) return now;
      }
      throw new Error('the use of the key was not noted');
    };
    await use(5);
    const first = await changedFrom(undefined);
    assert.equal((await uses()).length, 1);
    vault.clock.advance(59 * 60_000);
    await use(1);
    assert.equal(await lastUsed(), first);
    vault.clock.advance(2 * 60_000);
    await use(1);
    await use(1);
    assert.ok((await changedFrom(first)) > first);
    assert.equal((await uses()).length, 2);
  });

  test('410: regenerate names what took its place', async () => {
    const tenant = await newTenant();
    const { id, key } = await create(tenant);
    const answer = await manage(tenant, 'POST', `/applications/${id}/regenerate`);
    assert.equal(answer.status, 410);
    assert.match(answer.body.detail, /POST \/applications\/\{id\}\/keys/);
    assert.ok(await works(tenant, key));
  });

  test('400, 401, 403: a wrong query, no key, a key without the permission', async () => {
    const tenant = await newTenant();
    const { id, keys } = await create(tenant);
    const [path, one] = [`/applications/${id}/keys`, `/applications/${id}/keys/${keys[0].id}`];
    assert.equal((await manage(tenant, 'GET', `${path}?kind=x`)).status, 400);
    for (const [method, where] of [
      ['POST', path],
      ['GET', path],
      ['GET', one],
      ['DELETE', one],
    ] as const) {
      assert.equal((await tenant.vault.send(method, where)).status, 401);
      assert.equal((await tenant.send(method, where)).status, 403);
    }
    assert.ok(await works(tenant, tenant.key));
  });

  test('404: missing, malformed, of another application and of another tenant alike', async () => {
    const tenant = await newTenant();
    const mine = await create(tenant);
    const sibling = await create(tenant);
    const foreign = await create(await newTenant());
    for (const method of ['GET', 'DELETE']) {
      const texts = new Set<string>();
      for (const keyId of [missing, 'none', sibling.keys[0].id, foreign.keys[0].id]) {
        const answer = await manage(tenant, method, `/applications/${mine.id}/keys/${keyId}`);
        assert.equal(answer.status, 404);
        texts.add(answer.text);
      }
      assert.equal(texts.size, 1);
    }
    for (const id of [missing, foreign.id]) {
      assert.equal((await manage(tenant, 'GET', `/applications/${id}/keys`)).status, 404);
      assert.equal((await manage(tenant, 'POST', `/applications/${id}/keys`)).status, 404);
    }
    assert.ok(await works(tenant, sibling.key));
  });
});
