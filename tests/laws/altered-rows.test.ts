/** Who can write to the database, and holds no root key, changes nothing that the vault believes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SqlValue, shapes, type Table } from '../../src/store/tables.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { equations, having, insertion } from '../support/sql.ts';
import { newTenant, type TestTenant, untilUsed } from '../support/tenant.ts';
import { type Received, startVault, type TestVault } from '../support/vault.ts';

const secret = 'a secret value 5f0c';
/** Longer than any row is remembered, so long that alerts of one cause are not summed up, and no session ends. */
const laterMs = 4000;

type AnyRow = Readonly<Record<string, SqlValue>>;
type Sets = Readonly<Record<string, SqlValue>>;

interface Written {
  readonly table: Table;
  readonly where: string;
  readonly sets: Sets;
}

/** Writes outside the vault; every server has noticed afterwards. */
async function write(
  engine: Engine,
  vault: TestVault,
  { table, where, sets }: Written,
): Promise<void> {
  const list = equations(engine, table, sets);
  await engine.run(vault.place, `update ${table} set ${list.join(', ')} where ${where}`);
  vault.clock.advance(laterMs);
}

async function countOf(vault: TestVault): Promise<number> {
  const { text } = await vault.send('GET', '/metrics');
  return Number(/^strongroom_integrity_failures_total (\d+)$/m.exec(text)?.[1]);
}

/** Entries that alert whoever watches the log. */
async function alertsOf(tenant: TestTenant): Promise<readonly string[]> {
  const entries = await tenant.rows('logs');
  const alerts = entries.filter(({ message }) => message.includes('altered'));
  assert.ok(alerts.every(({ result }) => result === 'denied'));
  return alerts.map(({ entity_type, entity_id }) => `${entity_type} ${entity_id}`);
}

interface Refused {
  readonly tenant: TestTenant;
  readonly sets: Sets;
  readonly status: 401 | 500;
  readonly ask: () => Promise<Received>;
}

/** The request is refused with an alert and counted, and says nothing of the value. */
async function assertRefused({ tenant, sets, status, ask }: Refused): Promise<void> {
  const name = JSON.stringify(Object.keys(sets));
  // Equal refusals within a second are counted together.
  tenant.vault.clock.advance(1001);
  const [alerts, count] = [await alertsOf(tenant), await countOf(tenant.vault)];
  const answer = await ask();
  assert.equal(answer.status, status, `${name}: ${answer.text}`);
  const problem = status === 401 ? 'unauthenticated' : 'integrity';
  assert.equal(answer.body.type, `urn:strongroom:problem:${problem}`, name);
  assert.equal(answer.text.includes(secret), false, name);
  assert.ok((await alertsOf(tenant)).length > alerts.length, `${name} has an alert in the log`);
  assert.ok((await countOf(tenant.vault)) > count, `${name} is counted`);
}

/** Another value for every column of the row but those of its key. */
function alterations(
  table: 'tokens' | 'applications' | 'sessions' | 'tenants',
  row: AnyRow,
): Sets[] {
  const { columns, kinds, key } = shapes[table];
  return columns.flatMap((column, index): Sets[] => {
    if (key.includes(column)) return [];
    const value = row[column] ?? null;
    if (kinds[index] === 'integer') return [{ [column]: value === null ? 1 : Number(value) + 1 }];
    if (kinds[index] === 'bytes') return [];
    return [{ [column]: value === null ? 'x' : `${value} ` }];
  });
}

onBothEngines('a row that was altered outside the vault', (engine) => {
  test('500: any column of a token, whatever is shown of it and whatever is done with it', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: secret, containers: ['/a/'] });
    const masked = await tenant.holder({ transform: 'mask' });
    const redacted = await tenant.holder({ transform: 'redact' });
    const row = (await tenant.rows('tokens'))[0] as unknown as AnyRow;
    const where = having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'own' });
    const forgeries: Sets[] = [
      ...alterations('tokens', row).filter((sets) => !('type' in sets)),
      { type: 'card' },
      { container: '/b/' },
      { mask: '"{{ data }}"' },
      { expires_at: vault.clock.now() + 1e9 },
      { deduplicated: 1 },
    ].filter((sets) => !('expires_at' in sets) || Number(sets['expires_at']) > 1);
    for (const sets of forgeries) {
      await write(engine, vault, { table: 'tokens', where, sets });
      for (const key of [tenant.key, masked, redacted]) {
        const ask = () => tenant.send('GET', '/tokens/own', { key });
        await assertRefused({ tenant, sets, status: 500, ask });
      }
      const body = { metadata: { a: 'b' } };
      const patch = () => tenant.send('PATCH', '/tokens/own', { body });
      await assertRefused({ tenant, sets, status: 500, ask: patch });
      const whole = Object.fromEntries(Object.keys(sets).map((name) => [name, row[name] ?? null]));
      await write(engine, vault, { table: 'tokens', where, sets: whole });
    }
    const container = { container: '/b/' };
    await write(engine, vault, { table: 'tokens', where, sets: container });
    for (const path of ['/tokens?id=own', '/v2/tokens']) {
      const ask = () => tenant.send('GET', path);
      await assertRefused({ tenant, sets: container, status: 500, ask });
    }
    const alerts = (await alertsOf(tenant)).length;
    tenant.vault.clock.advance(1001);
    const cut = await tenant.send('GET', '/tokens/export').catch(() => undefined);
    assert.equal(cut?.text.includes(secret) ?? false, false);
    assert.ok((await alertsOf(tenant)).length > alerts, 'an export has an alert as well');
    await write(engine, vault, { table: 'tokens', where, sets: { container: '/a/' } });
    assert.equal((await tenant.send('GET', '/tokens/own')).body.data, secret);
    assert.ok((await alertsOf(tenant)).every((one) => one === 'token own'));
  });

  test('401: any column of an application, and its keys open nothing', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: secret });
    const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const row = (await tenant.rows('applications')).find(({ type }) => type === 'public');
    assert.ok(row);
    const where = `application_id = '${row.application_id}'`;
    const rules = JSON.stringify([
      {
        description: '',
        priority: 1,
        container: '/',
        transform: 'reveal',
        permissions: ['token:read'],
      },
    ]);
    const forgeries = [...alterations('applications', row as unknown as AnyRow), { rules }];
    for (const sets of forgeries) {
      await write(engine, vault, { table: 'applications', where, sets });
      const ask = () => tenant.send('GET', '/tokens/own', { key });
      await assertRefused({ tenant, sets, status: 401, ask });
      const whole = Object.fromEntries(
        Object.keys(sets).map((name) => [name, (row as unknown as AnyRow)[name] ?? null]),
      );
      await write(engine, vault, { table: 'applications', where, sets: whole });
    }
    // Nobody makes it good by changing it, but it can be removed.
    await write(engine, vault, { table: 'applications', where, sets: { rules } });
    const path = `/applications/${row.application_id}`;
    const manage = (method: string, at: string, body?: unknown) =>
      tenant.send(method, at, { key: tenant.managementKey, body });
    const update = { name: 'x', permissions: ['token:create'] };
    for (const [method, at, body] of [
      ['GET', path, undefined],
      ['PUT', path, update],
      ['POST', `${path}/keys`, undefined],
      ['GET', '/applications', undefined],
      ['GET', `${path}/keys`, undefined],
      ['GET', `${path}/keys/${JSON.parse(row.key_ids)[0]}`, undefined],
    ] as const) {
      const ask = () => manage(method, at, body);
      await assertRefused({ tenant, sets: { rules }, status: 500, ask });
    }
    assert.equal((await manage('DELETE', path)).status, 204);
  });

  test('500: any column of a key where keys are shown, and it can be removed', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const [row] = (await tenant.rows('api_keys')).filter(({ created_by }) => created_by !== null);
    assert.ok(row);
    const where = `key_id = '${row.key_id}'`;
    const path = `/applications/${row.application_id}`;
    const update = { name: 'x', permissions: ['token:create'] };
    const manage = (method: string, at: string, body?: unknown) =>
      tenant.send(method, at, { key: tenant.managementKey, body });
    const paths = ['/applications', path, `${path}/keys`, `${path}/keys/${row.key_id}`];
    for (const sets of [{ created_at: row.created_at - 1000 }, { created_by: null }]) {
      await write(engine, vault, { table: 'api_keys', where, sets });
      for (const at of paths) {
        await assertRefused({ tenant, sets, status: 500, ask: () => manage('GET', at) });
      }
      await assertRefused({ tenant, sets, status: 500, ask: () => manage('PUT', path, update) });
      const { created_at, created_by } = row;
      await write(engine, vault, { table: 'api_keys', where, sets: { created_at, created_by } });
      for (const at of paths) assert.equal((await manage('GET', at)).status, 200, at);
    }
    await write(engine, vault, { table: 'api_keys', where, sets: { created_by: null } });
    assert.equal((await manage('DELETE', `${path}/keys/${row.key_id}`)).status, 204);
  });

  for (const column of ['version', 'last_used_at', 'created_at']) {
    test(`204: an application is deleted with a key whose ${column} nobody can read, and none works`, async (t) => {
      const vault = await startVault(t, engine);
      const tenant = await newTenant(vault);
      const manage = (method: string, at: string, body?: unknown) =>
        tenant.send(method, at, { key: tenant.managementKey, body });
      const request = { name: 'a', type: 'private', permissions: ['token-intent:create'] };
      const { body: application } = await manage('POST', '/applications', request);
      const path = `/applications/${application.id}`;
      const { body: other } = await manage('POST', `${path}/keys`);
      const body = { type: 'token', data: secret };
      const use = (key: string) => tenant.send('POST', '/token-intents', { key, body });
      for (const key of [application.key, other.key]) assert.equal((await use(key)).status, 201);
      await untilUsed(tenant, application.key, other.key);
      const [unreadable] = application.keys;
      const row = (await tenant.rows('api_keys')).find(({ key_id }) => key_id === unreadable.id);
      assert.ok(row);
      const where = `key_id = '${unreadable.id}'`;
      const beyond = `update api_keys set ${column} = 9223372036854775807 where ${where}`;
      await engine.run(vault.place, beyond);
      vault.clock.advance(laterMs);
      assert.equal((await manage('GET', path)).body.type, 'urn:strongroom:problem:integrity');
      assert.equal((await use(other.key)).status, 201);
      assert.equal((await manage('DELETE', path)).status, 204);
      assert.equal((await use(other.key)).status, 401);
      assert.equal((await use(application.key)).status, column === 'version' ? 500 : 401);
      // Whoever altered it may put it back as it was.
      const whole = { [column]: (row as unknown as AnyRow)[column] ?? null };
      await write(engine, vault, { table: 'api_keys', where, sets: whole });
      assert.equal((await use(application.key)).status, 401);
      const left = (await tenant.rows('api_keys')).map(({ key_id }) => key_id);
      assert.equal(left.includes(other.id), false);
      assert.equal(left.includes(unreadable.id), column === 'version');
      assert.deepEqual(
        (await tenant.logged('application_key')).filter((one) => one === 'delete').length,
        column === 'version' ? 1 : 2,
      );
      assert.ok((await tenant.logged('application')).includes('delete'));
    });
  }

  test('401: the row of a deleted key that is put back', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const key = await tenant.application({ permissions: ['token:create'] });
    await tenant.send('GET', '/applications/key', { key });
    await untilUsed(tenant, key);
    const { body } = await tenant.send('GET', '/applications/key', { key });
    const row = (await tenant.rows('api_keys')).find(({ key_id }) => key_id === body.keys[0].id);
    assert.ok(row);
    const path = `/applications/${row.application_id}/keys/${row.key_id}`;
    assert.equal((await tenant.send('DELETE', path, { key: tenant.managementKey })).status, 204);
    await engine.run(vault.place, insertion(engine, 'api_keys', row));
    vault.clock.advance(laterMs);
    const ask = () => tenant.send('GET', '/applications/key', { key });
    await assertRefused({ tenant, sets: { row: 'put back' }, status: 401, ask });
    const manage = { key: tenant.managementKey };
    assert.equal((await tenant.send('GET', path, manage)).status, 404);
    const update = { name: 'x', permissions: ['token:create'] };
    for (const [method, at, body] of [
      ['GET', '/applications', undefined],
      ['GET', `/applications/${row.application_id}/keys`, undefined],
      ['PUT', `/applications/${row.application_id}`, update],
    ] as const) {
      const shown = await tenant.send(method, at, { ...manage, body });
      assert.equal(shown.status, 200);
      assert.equal(shown.text.includes(row.key_id), false, at);
    }
  });

  test('401: any column of a session', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await tenant.token({ id: 'own', type: 'token', data: secret });
    const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
    const { body: session } = await tenant.send('POST', '/sessions', { key: open });
    const grant = { nonce: session.nonce, permissions: ['token:create'] };
    await tenant.send('POST', '/sessions/authorize', { body: grant });
    const [row] = await tenant.rows('sessions');
    assert.ok(row);
    const where = `session_id = '${row.session_id}'`;
    const forgeries = alterations('sessions', row as unknown as AnyRow);
    for (const sets of [...forgeries, { permissions: '["token:read"]' }]) {
      await write(engine, vault, { table: 'sessions', where, sets });
      const ask = () => tenant.send('GET', '/tokens/own', { key: session.session_key });
      await assertRefused({ tenant, sets, status: 401, ask });
      const whole = Object.fromEntries(
        Object.keys(sets).map((name) => [name, (row as unknown as AnyRow)[name] ?? null]),
      );
      await write(engine, vault, { table: 'sessions', where, sets: whole });
    }
    const denied = await tenant.send('GET', '/tokens/own', { key: session.session_key });
    assert.equal(denied.status, 403, 'as it was, it is only not allowed to');
  });

  test('401: any column of the tenant, for all of its keys and for no other tenant', async (t) => {
    const vault = await startVault(t, engine);
    const [tenant, other] = [await newTenant(vault), await newTenant(vault)];
    const row = (await tenant.rows('tenants'))[0] as unknown as AnyRow;
    const where = `tenant_id = '${tenant.id}'`;
    const forgeries: Sets[] = [
      ...alterations('tenants', row).filter((sets) => !('deleted_at' in sets)),
      { quotas: '{"cvc_retention":31536000000}' },
      { settings: '{"fingerprint_tokens":"false"}' },
      { type: 'production' },
      { keyring: Buffer.from((await other.rows('tenants'))[0]?.keyring ?? []) },
      { keyring: Buffer.alloc(0) },
    ];
    for (const sets of forgeries) {
      await write(engine, vault, { table: 'tenants', where, sets });
      const ask = () => tenant.send('GET', '/tenants/self', { key: tenant.managementKey });
      await assertRefused({ tenant, sets, status: 401, ask });
      const { status } = await other.send('GET', '/tenants/self', { key: other.managementKey });
      assert.equal(status, 200);
      await runJob(vault, 'expire card codes');
      await runJob(vault, 'sign log checkpoints');
      const whole = Object.fromEntries(Object.keys(sets).map((name) => [name, row[name] ?? null]));
      await write(engine, vault, { table: 'tenants', where, sets: whole });
    }
    const ask = await tenant.send('GET', '/tenants/self', { key: tenant.managementKey });
    assert.equal(ask.status, 200);
  });

  test('500: any column of a token intent', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    const key = await tenant.application({
      permissions: ['token-intent:create', 'token-intent:read', 'token:create'],
    });
    const body = { type: 'token', data: secret };
    const { id } = (await tenant.send('POST', '/token-intents', { key, body })).body;
    const [row] = await tenant.rows('token_intents');
    assert.ok(row);
    const where = having(engine, 'token_intents', { token_intent_id: id });
    for (const sets of [
      { type: 'card' },
      { fingerprint: 'x' },
      { version: 2 },
      { code_expires_at: 1 },
      { created_by: 'x' },
      { created_at: row.created_at + 1 },
      { expires_at: row.expires_at + 1 },
    ]) {
      await write(engine, vault, { table: 'token_intents', where, sets });
      const read = () => tenant.send('GET', `/token-intents/${id}`, { key });
      await assertRefused({ tenant, sets, status: 500, ask: read });
      const convert = () => tenant.send('POST', '/tokens', { key, body: { token_intent_id: id } });
      await assertRefused({ tenant, sets, status: 500, ask: convert });
      const whole = Object.fromEntries(
        Object.keys(sets).map((name) => [name, (row as unknown as AnyRow)[name] ?? null]),
      );
      await write(engine, vault, { table: 'token_intents', where, sets: whole });
    }
  });
});
