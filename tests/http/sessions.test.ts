/** POST, GET and DELETE /sessions, POST /sessions/authorize, and what the key of a session may do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusalWindowMs } from '../../src/audit/refusals.ts';
import { hashApiKey } from '../../src/keys/api-key.ts';
import { ifProven, proven } from '../../src/rules/proven-row.ts';
import type { Row } from '../../src/store/tables.ts';
import { onBothEngines } from '../support/engines.ts';
import { asStored } from '../support/rows.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';
import { createStillClock, startVault } from '../support/vault.ts';

const minute = 60_000;

onBothEngines('sessions', (engine) => {
  const newTenant = tenantsOf(engine);

  const publicKey = (tenant: TestTenant) =>
    tenant.application({ type: 'public', permissions: ['token:create'] });
  const begin = async (tenant: TestTenant) => {
    const created = await tenant.send('POST', '/sessions', { key: await publicKey(tenant) });
    assert.equal(created.status, 201, created.text);
    return created.body as { session_key: string; nonce: string; expires_at: string };
  };
  const authorize = (tenant: TestTenant, body: Given, key = tenant.key, headers = {}) =>
    tenant.send('POST', '/sessions/authorize', { key, body, headers });
  const readRule = (id: string): Given => ({
    priority: 1,
    conditions: [{ attribute: 'id', operator: 'equals', value: id }],
    permissions: ['token:read'],
    transform: 'reveal',
  });

  test('POST /sessions 201: a key, a nonce of 22 characters, and three minutes', async () => {
    const tenant = await newTenant();
    const before = tenant.vault.clock.now();
    const { session_key, nonce, expires_at } = await begin(tenant);
    assert.match(session_key, /^key_test_ses_[0-9A-Za-z]{49}$/);
    assert.match(nonce, /^[1-9A-HJ-NP-Za-km-z]{22}$/);
    const life = Date.parse(expires_at) - before;
    assert.ok(life >= 3 * minute && life < 3 * minute + 10_000, `${life}`);
    assert.deepEqual(await tenant.logged('session'), ['create']);
    const [row] = await tenant.rows('sessions');
    assert.ok(!JSON.stringify(row).includes(nonce) && !JSON.stringify(row).includes(session_key));
  });

  test('POST /sessions 401 and 403: without a key, and with one of another kind', async () => {
    const tenant = await newTenant();
    assert.equal((await tenant.vault.send('POST', '/sessions')).status, 401);
    const { session_key } = await begin(tenant);
    for (const key of [tenant.key, tenant.managementKey, session_key]) {
      assert.equal((await tenant.send('POST', '/sessions', { key })).status, 403);
    }
    assert.deepEqual(await tenant.logged('session'), [
      'create',
      'create denied',
      'create denied',
      'create denied',
    ]);
  });

  test('403: until it is authorized the key may do nothing, not even look at itself', async () => {
    const tenant = await newTenant();
    const { session_key: key } = await begin(tenant);
    const body = { type: 'token', data: 1 };
    assert.equal((await tenant.send('POST', '/tokens', { key, body })).status, 403);
    for (const path of ['/tokens/abc', '/applications/key', '/permissions', '/tenants/self']) {
      assert.equal((await tenant.send('GET', path, { key })).status, 403, path);
    }
  });

  test('authorize 200: an empty body, and the session may do what it was granted, at once', async () => {
    const tenant = await newTenant();
    const { body: seen } = await tenant.token({ type: 'token', data: 'shown' });
    const { body: other } = await tenant.token({ type: 'token', data: 'other' });
    const { session_key: key, nonce } = await begin(tenant);
    const read = (id: string) => tenant.send('GET', `/tokens/${id}`, { key });
    assert.equal((await read(seen.id)).status, 403);
    const authorized = await authorize(tenant, { nonce, rules: [readRule(seen.id)] });
    assert.equal(authorized.status, 200);
    assert.equal(authorized.text, '');
    const shown = await read(seen.id);
    assert.equal(shown.status, 200);
    assert.equal(shown.body.data, 'shown');
    assert.equal((await read(other.id)).status, 403);
    const update = { key, body: { data: 'changed' } };
    assert.equal((await tenant.send('PATCH', `/tokens/${seen.id}`, update)).status, 403);
    assert.deepEqual(await tenant.logged('session'), ['authorize', 'create']);
    const [entry] = (await tenant.rows('logs')).filter(
      (one) => one.entity_id === seen.id && one.operation === 'read' && one.result === 'success',
    );
    const [row] = await tenant.rows('sessions');
    assert.deepEqual([entry?.actor_type, entry?.actor_id], ['session', row?.session_id]);
  });

  test('authorize 200: what a session creates is by the application that created the session', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const own = (await tenant.send('GET', '/applications/key', { key })).body.id;
    const session = (await tenant.send('POST', '/sessions', { key })).body;
    await authorize(tenant, { nonce: session.nonce, permissions: ['token:create', 'token:read'] });
    const created = await tenant.send('POST', '/tokens', {
      key: session.session_key,
      body: { type: 'token', data: 1 },
    });
    assert.equal(created.status, 201);
    assert.equal(created.body.created_by, own);
  });

  test('authorize 409: of many at once one succeeds, and no later one does', async () => {
    const tenant = await newTenant();
    const { nonce } = await begin(tenant);
    const body = { nonce, permissions: ['token:read'] };
    const answers = await Promise.all(Array.from({ length: 10 }, () => authorize(tenant, body)));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [200, ...Array(9).fill(409)]);
    assert.equal((await authorize(tenant, body)).status, 409);
    assert.deepEqual(await tenant.logged('session'), ['authorize', 'create']);
  });

  test('authorize 200: a retry under the same idempotency key is answered like the first', async () => {
    const tenant = await newTenant();
    const { nonce } = await begin(tenant);
    const body = { nonce, permissions: ['token:read'] };
    for (const _try of [1, 2]) {
      const answer = await authorize(tenant, body, tenant.key, { 'svc-idempotency-key': 'k' });
      assert.equal(answer.status, 200);
    }
  });

  test('authorize 400: every attribute that is wrong is named, and the nonce stays unused', async () => {
    const tenant = await newTenant();
    const { nonce } = await begin(tenant);
    const at = (ms: number) => new Date(tenant.vault.clock.now() + ms).toISOString();
    const permissions = ['token:read'];
    for (const [body, attributes] of [
      [{ permissions }, ['nonce']],
      [{ nonce: 7, permissions }, ['nonce']],
      [{ nonce }, ['permissions']],
      [{ nonce, permissions: [], rules: [] }, ['permissions']],
      [{ nonce, permissions: ['token:raed'] }, ['permissions[0]']],
      [{ nonce, permissions: ['log:read'] }, ['permissions[0]']],
      [{ nonce, rules: [{ ...readRule('abc'), container: '/' }] }, ['rules[0].conditions']],
      [{ nonce, rules: [{ ...readRule('abc'), conditions: [] }] }, ['rules[0].conditions']],
      [{ nonce, permissions, expires_at: 'soon' }, ['expires_at']],
      [{ nonce, permissions, expires_at: at(-1000) }, ['expires_at']],
      [{ nonce, permissions, expires_at: at(25 * 60 * minute) }, ['expires_at']],
      [{ nonce, permissions, expires: at(1000) }, ['expires']],
    ] as const) {
      const answer = await authorize(tenant, body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors), attributes);
    }
    assert.equal((await authorize(tenant, { nonce, permissions })).status, 200);
  });

  test('authorize 401 and 403: without a key, and with one that is not of a private application', async () => {
    const tenant = await newTenant();
    const { nonce, session_key } = await begin(tenant);
    const body = { nonce, permissions: ['token:create'] };
    const unnamed = await tenant.vault.send('POST', '/sessions/authorize', { body });
    assert.equal(unnamed.status, 401);
    for (const key of [await publicKey(tenant), tenant.managementKey, session_key]) {
      assert.equal((await authorize(tenant, body, key)).status, 403);
    }
  });

  test('authorize 403: no more than the application itself holds, and the nonce stays unused', async () => {
    const tenant = await newTenant();
    const { nonce } = await begin(tenant);
    const narrow = await tenant.application({
      rules: [{ priority: 1, container: '/a/', permissions: ['token:read'], transform: 'mask' }],
    });
    const rule = { priority: 1, permissions: ['token:read'], transform: 'mask', container: '/a/' };
    for (const grant of [
      { permissions: ['token:read'] },
      { rules: [{ ...rule, container: '/' }] },
      { rules: [{ ...rule, transform: 'reveal' }] },
      { rules: [{ ...rule, permissions: ['token:read', 'token:use'] }] },
      { rules: [{ ...readRule('abc'), transform: 'mask' }] },
    ]) {
      const refused = await authorize(tenant, { nonce, ...grant }, narrow);
      assert.equal(refused.status, 403, JSON.stringify(grant));
      tenant.vault.clock.advance(refusalWindowMs);
    }
    const granted = await authorize(tenant, { nonce, rules: [rule] }, narrow);
    assert.equal(granted.status, 200);
    assert.equal(
      (await tenant.logged('session')).filter((one) => one === 'authorize denied').length,
      5,
    );
  });

  test('authorize 404: unknown, expired and another tenant’s nonces look alike', async () => {
    const vault = await newTenant();
    const tenant = await newTenant();
    const foreign = await begin(vault);
    const expired = await begin(tenant);
    tenant.vault.clock.advance(3 * minute);
    const texts = new Set<string>();
    for (const nonce of ['1111111111111111111111', '', expired.nonce, foreign.nonce]) {
      const answer = await authorize(tenant, { nonce, permissions: ['token:read'] });
      assert.equal(answer.status, 404);
      texts.add(answer.text);
    }
    assert.equal(texts.size, 1);
  });

  test('401: from its expiry on the key is as good as none, to the millisecond', async (t) => {
    const clock = createStillClock();
    const vault = await startVault(t, engine, { clock });
    const key = await vault.application({ type: 'public', permissions: ['token:create'] });
    const authorizer = await vault.application();
    const { session_key, nonce } = (await vault.send('POST', '/sessions', { key })).body;
    const expires_at = new Date(clock.now() + 60 * minute).toISOString();
    const body = { nonce, permissions: ['token:create'], expires_at };
    assert.equal(
      (await vault.send('POST', '/sessions/authorize', { key: authorizer, body })).status,
      200,
    );
    const status = async () =>
      (await vault.send('GET', '/applications/key', { key: session_key })).status;
    clock.advance(60 * minute - 1);
    assert.equal(await status(), 200);
    clock.advance(1);
    assert.equal(await status(), 401);
  });

  test('403: a session ends when the application that authorized it could not grant it any more', async () => {
    const tenant = await newTenant();
    const created = await tenant.send('POST', '/applications', {
      key: tenant.managementKey,
      body: { name: 'a', type: 'private', permissions: ['token:read', 'token:create'] },
    });
    const { session_key: key, nonce } = await begin(tenant);
    await authorize(tenant, { nonce, permissions: ['token:read'] }, created.body.key);
    const status = async () => (await tenant.send('GET', '/permissions', { key })).status;
    assert.equal(await status(), 200);
    await tenant.send('PUT', `/applications/${created.body.id}`, {
      key: tenant.managementKey,
      body: { name: 'a', permissions: ['token:create'] },
    });
    assert.equal(await status(), 403);
  });

  test('401: a session ends with the application that created it', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const { id } = (await tenant.send('GET', '/applications/key', { key })).body;
    const { session_key } = (await tenant.send('POST', '/sessions', { key })).body;
    await tenant.send('DELETE', `/applications/${id}`, { key: tenant.managementKey });
    assert.equal((await tenant.send('GET', '/permissions', { key: session_key })).status, 401);
  });

  /** Two applications with two keys each, of which the first creates and authorizes a session. */
  async function derived(tenant: TestTenant) {
    const manage = (method: string, path: string, body?: object) =>
      tenant.send(method, path, { key: tenant.managementKey, ...(body && { body }) });
    const made = async (type: string, permissions: readonly string[]) => {
      const { body } = await manage('POST', '/applications', { name: type, type, permissions });
      const other = (await manage('POST', `/applications/${body.id}/keys`)).body;
      return { id: body.id, key: body.key, keyId: body.keys[0].id, otherKeyId: other.id };
    };
    const page = await made('public', ['token:create']);
    const server = await made('private', ['token:read', 'token:create']);
    const { session_key, nonce } = (await tenant.send('POST', '/sessions', { key: page.key })).body;
    const body = { nonce, permissions: ['token:read'] };
    assert.equal(
      (await tenant.send('POST', '/sessions/authorize', { key: server.key, body })).status,
      200,
    );
    const status = async () =>
      (await tenant.send('GET', '/permissions', { key: session_key })).status;
    const listed = async () => (await manage('GET', '/sessions')).body;
    return { manage, page, server, session_key, nonce, status, listed };
  }

  test('403: a session ends with the key that authorized it, and with no other key', async () => {
    const { manage, server, status, listed } = await derived(await newTenant());
    const path = `/applications/${server.id}/keys`;
    await manage('DELETE', `${path}/${server.otherKeyId}`);
    assert.equal(await status(), 200);
    await manage('DELETE', `${path}/${server.keyId}`);
    assert.equal(await status(), 403);
    assert.deepEqual((await listed()).data, []);
  });

  test('401: a session ends with the key that created it, and with no other key', async () => {
    const { manage, page, status, listed } = await derived(await newTenant());
    const path = `/applications/${page.id}/keys`;
    await manage('DELETE', `${path}/${page.otherKeyId}`);
    assert.equal(await status(), 200);
    await manage('DELETE', `${path}/${page.keyId}`);
    assert.equal(await status(), 401);
    assert.deepEqual((await listed()).data, []);
  });

  test('404: a nonce cannot be used once the key that created its session is gone', async () => {
    const tenant = await newTenant();
    const { manage, page, server } = await derived(tenant);
    const { nonce } = (await tenant.send('POST', '/sessions', { key: page.key })).body;
    await manage('DELETE', `/applications/${page.id}/keys/${page.keyId}`);
    const refused = await authorize(tenant, { nonce, permissions: ['token:read'] }, server.key);
    assert.equal(refused.status, 404);
  });

  test('401: a session of an earlier release, which does not say its keys, has ended', async () => {
    const tenant = await newTenant();
    const { session_key, status } = await derived(tenant);
    const { store } = tenant.vault.running.vault;
    const found = await tenant.vault.running.vault.tenants.find(tenant.id);
    const [row] = (await tenant.rows('sessions')) as Row<'sessions'>[];
    const [entry] = await tenant.rows('logs');
    assert.ok(found && row && entry);
    const before = {
      ...row,
      version: row.version + 1,
      created_by_key: null,
      authorized_by_key: null,
    };
    // As release 1 wrote it: its proof knows nothing of the columns.
    const { created_by_key: _one, authorized_by_key: _other, proof: _proof, ...columns } = before;
    const sessions = [proven(found, 'sessions', columns as Row<'sessions'>)];
    const written = { ...before, proof: sessions[0]?.proof ?? '' };
    assert.deepEqual(
      await store.commit({ replace: { sessions: [written] }, entries: [entry] }),
      {},
    );
    assert.ok(ifProven(found, 'sessions', asStored(written)));
    // What gives access is remembered; the change above took none that the vault knows of.
    store.epochs.advance('access');
    assert.equal(await status(), 401);
    assert.equal((await tenant.send('GET', '/permissions', { key: session_key })).status, 401);
    const altered = (await tenant.rows('logs')).filter(({ message }) =>
      message.includes('altered'),
    );
    assert.deepEqual(altered, []);
  });

  test('GET /sessions 200: the sessions that are alive, newest first, without keys and nonces', async () => {
    const tenant = await newTenant();
    const { manage, page, server, session_key, nonce } = await derived(tenant);
    await newTenant().then(derived);
    await tenant.send('POST', '/sessions', { key: page.key });
    const list = await manage('GET', '/sessions');
    assert.equal(list.status, 200, list.text);
    assert.equal(list.body.pagination.total_items, 2);
    const [begun, authorized] = list.body.data;
    assert.deepEqual([begun.application_id, begun.created_by_key], [page.id, page.keyId]);
    assert.deepEqual([begun.permissions, begun.rules, begun.authorized_by], [[], [], undefined]);
    assert.deepEqual(
      [authorized.created_by_key, authorized.authorized_by, authorized.authorized_by_key],
      [page.keyId, server.id, server.keyId],
    );
    assert.deepEqual(authorized.permissions, ['token:read']);
    assert.ok(authorized.authorized_at && authorized.created_at && authorized.expires_at);
    const [row] = await tenant.rows('sessions');
    for (const secret of [session_key, nonce, row?.key_hash, row?.nonce_hash]) {
      assert.ok(secret && !list.text.includes(secret));
    }
    const first = (await manage('GET', '/sessions?size=1')).body;
    assert.deepEqual(
      first.data.map(({ id }: { id: string }) => id),
      [begun.id],
    );
    const second = (await manage('GET', `/sessions?size=1&start=${first.pagination.next}`)).body;
    assert.deepEqual(
      second.data.map(({ id }: { id: string }) => id),
      [authorized.id],
    );
    assert.ok((await tenant.logged('session')).includes('list'));
  });

  test('DELETE /sessions/{id} 204: its key is refused at once; 404 for what is gone or foreign', async () => {
    const tenant = await newTenant();
    const { manage, status, listed } = await derived(tenant);
    const foreign = await derived(await newTenant());
    const [{ id }] = (await listed()).data;
    const [{ id: foreignId }] = (await foreign.listed()).data;
    assert.equal(await status(), 200);
    assert.equal((await manage('DELETE', `/sessions/${foreignId}`)).status, 404);
    assert.equal((await manage('DELETE', `/sessions/${id}`)).status, 204);
    assert.deepEqual([await status(), await foreign.status()], [401, 200]);
    assert.equal((await manage('DELETE', `/sessions/${id}`)).status, 404);
    assert.deepEqual(await tenant.rows('sessions'), []);
    assert.ok((await tenant.rows('api_keys')).every(({ session_id }) => session_id === null));
    assert.ok((await tenant.logged('session')).includes('delete'));
  });

  test('GET and DELETE /sessions 403: without session:read and session:delete', async () => {
    const tenant = await newTenant();
    const { listed } = await derived(tenant);
    const [{ id }] = (await listed()).data;
    const key = await tenant.application({ type: 'management', permissions: ['application:read'] });
    for (const given of [key, tenant.key]) {
      assert.equal((await tenant.send('GET', '/sessions', { key: given })).status, 403);
      assert.equal((await tenant.send('DELETE', `/sessions/${id}`, { key: given })).status, 403);
    }
  });

  test('a session with a time that the vault cannot have written hides no other one, on any page', async () => {
    const tenant = await newTenant();
    const { manage, page } = await derived(tenant);
    const [row] = await tenant.rows('sessions');
    await tenant.send('POST', '/sessions', { key: page.key });
    const never = 2n ** 60n;
    for (const sets of [
      `expires_at = ${never}`,
      `created_at = -${never}`,
      `created_at = ${never}`,
    ]) {
      await engine.run(
        tenant.vault.place,
        `update sessions set ${sets} where session_id = '${row?.session_id}'`,
      );
      const seen: string[] = [];
      for (let start: string | undefined; ; ) {
        const query: string = start === undefined ? '' : `&start=${encodeURIComponent(start)}`;
        const { status, body, text } = await manage('GET', `/sessions?size=1${query}`);
        assert.equal(status, 200, text);
        seen.push(...body.data.map(({ id }: { readonly id: string }) => id));
        start = body.pagination.next;
        if (start === undefined) break;
      }
      assert.equal(seen.length, 1);
      assert.ok(!seen.includes(row?.session_id ?? ''));
    }
  });

  test('a session that was altered is put aside, can be removed, and takes no other key with it', async () => {
    const tenant = await newTenant();
    const { manage, page, status } = await derived(tenant);
    const [row] = await tenant.rows('sessions');
    await tenant.send('POST', '/sessions', { key: page.key });
    const { store } = tenant.vault.running.vault;
    const own = hashApiKey(tenant.key);
    await engine.run(
      tenant.vault.place,
      `update sessions set key_hash = '${own}' where session_id = '${row?.session_id}'`,
    );
    store.epochs.advance('access');
    const list = await manage('GET', '/sessions');
    assert.equal(list.status, 200, list.text);
    assert.equal(list.body.data.length, 1);
    assert.ok(!list.text.includes(row?.session_id ?? ''));
    const alerts = (await tenant.rows('logs')).filter(
      ({ operation, message }) => operation === 'list' && message.includes('altered'),
    );
    assert.deepEqual(
      alerts.map(({ entity_type, entity_id }) => [entity_type, entity_id]),
      [['session', row?.session_id]],
    );
    assert.equal((await manage('DELETE', `/sessions/${row?.session_id}`)).status, 204);
    assert.equal(await status(), 401);
    assert.equal((await tenant.send('GET', '/permissions')).status, 200);
  });

  test('keys of sessions are no keys of the application: not listed, not counted', async () => {
    const tenant = await newTenant();
    const key = await publicKey(tenant);
    const { id } = (await tenant.send('GET', '/applications/key', { key })).body;
    for (let count = 0; count < 4; count++) await tenant.send('POST', '/sessions', { key });
    const path = `/applications/${id}/keys`;
    const list = await tenant.send('GET', path, { key: tenant.managementKey });
    assert.equal(list.body.length, 1);
    assert.equal((await tenant.send('POST', path, { key: tenant.managementKey })).status, 201);
    const [row] = (await tenant.rows('api_keys')).filter((one) => one.session_id !== null);
    const one = await tenant.send('GET', `${path}/${row?.key_id}`, { key: tenant.managementKey });
    assert.equal(one.status, 404);
  });
});
