/** GET, PUT and DELETE /tenants/self, and the usage report. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { purgeDeletedTenants } from '../../src/access/tenants/delete.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Given, type TestTenant, tenantsOf } from '../support/tenant.ts';

onBothEngines('/tenants/self', (engine) => {
  const newTenant = tenantsOf(engine);

  const manage = (tenant: TestTenant, method: string, path = '/tenants/self', body?: Given) =>
    tenant.send(method, path, { key: tenant.managementKey, ...(body && { body }) });
  const holderOf = (tenant: TestTenant, permission: string) =>
    tenant.application({ type: 'management', permissions: [permission] });

  test('GET 200: name, type, all settings, and the quotas the operator set', async () => {
    const tenant = await newTenant();
    const read = await manage(tenant, 'GET');
    assert.equal(read.status, 200);
    const { id, type, settings, quotas } = read.body;
    assert.deepEqual([id, type], [tenant.id, 'test']);
    assert.deepEqual(settings, {
      fingerprint_tokens: 'true',
      deduplicate_tokens: 'false',
      disable_ephemeral_proxy: 'false',
      proxy_destinations: '',
      token_deduplication_behavior: 'read_existing',
      bank_verification_provider: 'rules',
    });
    assert.equal(quotas.tokenize_limit, 1000);
    assert.equal(quotas.cvc_retention, 3_600_000);
    assert.ok((await tenant.logged('tenant')).includes('read'));
  });

  test('PUT 200: settings are merged, the name replaces, and both hold at once', async () => {
    const tenant = await newTenant();
    const first = await manage(tenant, 'PUT', '/tenants/self', {
      name: 'Acme',
      settings: { deduplicate_tokens: 'true' },
    });
    assert.equal(first.status, 200);
    assert.equal(first.body.name, 'Acme');
    assert.ok(first.body.modified_at && first.body.modified_by);
    const second = await manage(tenant, 'PUT', '/tenants/self', {
      name: 'Acme & Söhne',
      settings: { token_deduplication_behavior: 'update_existing' },
    });
    const { deduplicate_tokens, token_deduplication_behavior } = second.body.settings;
    assert.deepEqual(
      [deduplicate_tokens, token_deduplication_behavior],
      ['true', 'update_existing'],
    );
    assert.deepEqual((await manage(tenant, 'GET')).body, second.body);
    const [a, b] = [
      await tenant.token({ type: 'token', data: 'x' }),
      await tenant.token({ type: 'token', data: 'x' }),
    ];
    assert.equal(a.body.id, b.body.id);
  });

  test('PUT 200: a name that another tenant has does not reveal that there is such a tenant', async () => {
    const other = await newTenant();
    const { name } = (await manage(other, 'GET')).body;
    const tenant = await newTenant();
    const renamed = await manage(tenant, 'PUT', '/tenants/self', { name });
    assert.equal(renamed.status, 200);
    assert.equal(renamed.body.name, name);
  });

  test('PUT 200: concurrent updates lose no setting', async () => {
    const tenant = await newTenant();
    const settings = {
      fingerprint_tokens: 'false',
      deduplicate_tokens: 'true',
      token_deduplication_behavior: 'update_existing',
    };
    const answers = await Promise.all(
      Object.entries(settings).map(([name, value]) =>
        manage(tenant, 'PUT', '/tenants/self', { name: 'n', settings: { [name]: value } }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    const { body } = await manage(tenant, 'GET');
    assert.deepEqual(body.settings, { ...body.settings, ...settings });
  });

  test('PUT 400: an unknown setting, a value it cannot have, a missing name: all are named', async () => {
    const tenant = await newTenant();
    for (const [body, attributes] of [
      [{}, ['name']],
      [{ name: '' }, ['name']],
      [{ name: 'n'.repeat(201) }, ['name']],
      [{ name: 'n', settings: { deduplicate_tokens: true } }, ['settings.deduplicate_tokens']],
      [
        { name: 'n', settings: { fingerprint_tokens: 'yes', colour: 'red' } },
        ['settings.fingerprint_tokens', 'settings.colour'],
      ],
      [{ name: 'n', settings: { constructor: 'x' } }, ['settings.constructor']],
      [
        { name: 'n', settings: { disable_ephemeral_proxy: 'on', proxy_destinations: 'a b' } },
        ['settings.disable_ephemeral_proxy', 'settings.proxy_destinations'],
      ],
      [{ name: 'n', quotas: { tokenize_limit: 5 } }, ['quotas']],
    ] as const) {
      const answer = await manage(tenant, 'PUT', '/tenants/self', body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual(Object.keys(answer.body.errors), attributes);
    }
  });

  test('PUT 400: a name with half a surrogate pair, which no database keeps, locks nobody out', async () => {
    const tenant = await newTenant();
    const refused = await manage(tenant, 'PUT', '/tenants/self', { name: 'shop \ud83c' });
    assert.equal(refused.status, 400, refused.text);
    assert.deepEqual(Object.keys(refused.body.errors), ['name']);
    tenant.vault.clock.advance(1_000);
    assert.equal((await manage(tenant, 'GET')).status, 200);
    const role = (await tenant.send('GET', '/applications/key')).body.id;
    const resources: Readonly<Record<string, Given>> = {
      '/applications': { type: 'private', permissions: ['token:read'] },
      '/people': { applications: [role] },
      '/proxies': { destination_url: 'https://example.com' },
      '/reactors': { code: 'module.exports = () => null', runtime: { image: 'node22' } },
      '/webhooks': { url: 'https://example.com/', events: ['token.created'] },
    };
    for (const [path, body] of Object.entries(resources)) {
      const created = await manage(tenant, 'POST', path, { ...body, name: '\ude00' });
      assert.equal(created.status, 400, `${path}: ${created.text}`);
      assert.deepEqual(Object.keys(created.body.errors), ['name'], path);
    }
  });

  test('DELETE 204: from then on no key works and nothing can be opened; then all rows go', async () => {
    const tenant = await newTenant();
    const bystander = await newTenant();
    await bystander.token({ type: 'token', data: 'stays' });
    for (let count = 0; count < 5; count++) await tenant.token({ type: 'token', data: 'gone' });
    const publicKey = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const session = await tenant.send('POST', '/sessions', { key: publicKey });
    const deleted = await manage(tenant, 'DELETE');
    assert.equal(deleted.status, 204);
    for (const key of [tenant.key, tenant.managementKey, publicKey, session.body.session_key]) {
      assert.equal((await tenant.send('GET', '/applications/key', { key })).status, 401);
    }
    const [row] = await tenant.rows('tenants');
    assert.equal(row?.keyring.length, 0);
    assert.notEqual(row?.deleted_at, null);
    const { store, clock, tenants } = tenant.vault.running.vault;
    assert.ok((await tenants.all()).every(({ tenant_id }) => tenant_id !== tenant.id));
    const purged: number[] = [];
    for (;;) {
      const count = await purgeDeletedTenants({ store, tenants, clock }, 3);
      if (count === 0) break;
      purged.push(count);
    }
    assert.ok(purged.length > 2 && purged.every((count) => count <= 3), `${purged}`);
    for (const table of ['tokens', 'search_terms', 'applications', 'api_keys', 'sessions'] as const)
      assert.deepEqual(await tenant.rows(table), []);
    const entries = await tenant.logged('tenant');
    assert.equal(entries.filter((one) => one === 'purge').length, purged.length);
    assert.ok(entries.includes('delete'));
    assert.equal((await bystander.rows('tokens')).length, 1);
  });

  test('DELETE 204: what another server still writes for the tenant is removed as well', async () => {
    const tenant = await newTenant();
    const created = await tenant.token({ type: 'token', data: 'late' });
    const [row] = await tenant.rows('tokens');
    await manage(tenant, 'DELETE');
    const { store, clock, tenants } = tenant.vault.running.vault;
    while ((await purgeDeletedTenants({ store, tenants, clock }, 100)) > 0);
    const [entry] = await tenant.rows('logs');
    assert.ok(row && entry && created.status === 201);
    // The other server still had the keys, which this one does not: here nothing is proven with them.
    await store.commit({ insert: { tokens: [row] }, entries: [entry], unexplained: true });
    assert.equal(await purgeDeletedTenants({ store, tenants, clock }, 100), 1);
    assert.deepEqual(await tenant.rows('tokens'), []);
  });

  test('401 and 403: without a key, and without the permission of each operation', async () => {
    const tenant = await newTenant();
    for (const [method, path, own] of [
      ['GET', '/tenants/self', 'tenant:read'],
      ['PUT', '/tenants/self', 'tenant:update'],
      ['DELETE', '/tenants/self', 'tenant:delete'],
      ['GET', '/tenants/self/reports/usage', 'report:read'],
    ] as const) {
      const body = method === 'PUT' ? { body: { name: 'n' } } : {};
      assert.equal((await tenant.vault.send(method, path, body)).status, 401);
      assert.equal((await tenant.send(method, path, body)).status, 403);
      const key = await holderOf(tenant, own === 'tenant:read' ? 'log:read' : 'tenant:read');
      assert.equal((await tenant.send(method, path, { key, ...body })).status, 403);
    }
    assert.equal((await manage(tenant, 'GET')).status, 200);
  });

  test('GET /reports/usage 200: tokens by type, without those that have expired', async () => {
    const tenant = await newTenant();
    const { clock } = tenant.vault;
    // Months are those of the calendar, so none may end while tokens are made and counted.
    const now = new Date(clock.now());
    clock.advance(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 15) - now.getTime());
    const report = async () => (await manage(tenant, 'GET', '/tenants/self/reports/usage')).body;
    const empty = { total_tokens: 0, monthly_active_tokens: 0, metrics_by_type: {} };
    assert.deepEqual(await report(), { total_tokens: 0, token_report: empty });
    await tenant.token({ type: 'token', data: 1 });
    const last = await tenant.token({ type: 'token', data: 2 });
    const bank = { routing_number: '021000021', account_number: '123456789' };
    await tenant.token({ type: 'bank', data: bank });
    const soon = new Date(clock.now() + 60_000).toISOString();
    await tenant.token({ type: 'token', data: 3, expires_at: soon });
    assert.equal((await report()).total_tokens, 4);
    clock.advance(61_000);
    const { total_tokens, token_report } = await report();
    assert.deepEqual([total_tokens, token_report.total_tokens], [3, 3]);
    assert.deepEqual(Object.keys(token_report.metrics_by_type), ['bank', 'token']);
    const { count, last_created_at } = token_report.metrics_by_type.token;
    assert.deepEqual([count, last_created_at], [2, last.body.created_at]);
    assert.equal(token_report.monthly_active_tokens, 3);
    clock.advance(32 * 24 * 3_600_000);
    assert.equal((await report()).token_report.monthly_active_tokens, 0);
  });
});
