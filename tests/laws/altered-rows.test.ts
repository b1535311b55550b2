/** Who can write to the database, and holds no root key, changes nothing that the vault believes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SqlValue, shapes, type Table } from '../../src/store/tables.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { equations, having, insertion } from '../support/sql.ts';
import { newTenant, type TestTenant, tenantsOf, untilUsed } from '../support/tenant.ts';
import type { Received, TestVault } from '../support/vault.ts';

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
  readonly ask: Reader;
  /** The one alert that there must be, where that is known. */
  readonly alert?: string | undefined;
}

let refusals = 0;

/** The request is refused with an alert, and says nothing of the value. See {@link assertCounted}. */
async function assertRefused({ tenant, sets, status, ask, alert }: Refused): Promise<void> {
  const name = JSON.stringify(Object.keys(sets));
  // Equal refusals within a second are counted together.
  tenant.vault.clock.advance(1001);
  const alerts = await alertsOf(tenant);
  const answer = await ask();
  assert.equal(answer.status, status, `${name}: ${answer.text}`);
  const problem = status === 401 ? 'unauthenticated' : 'integrity';
  assert.equal(answer.body.type, `urn:strongroom:problem:${problem}`, name);
  assert.equal(answer.text.includes(secret), false, name);
  const after = await alertsOf(tenant);
  if (alert !== undefined) assert.deepEqual(after, [...alerts, alert], name);
  assert.ok(after.length > alerts.length, `${name} has an alert in the log`);
  refusals += 1;
}

/** Each refusal is counted. The metrics are read once for many, or they would be of a moment ago. */
async function assertCounted({ vault }: TestTenant, work: () => Promise<void>): Promise<void> {
  const [before, refusalsBefore] = [await countOf(vault), refusals];
  await work();
  const [counted, expected] = [(await countOf(vault)) - before, refusals - refusalsBefore];
  assert.ok(expected > 0 && counted >= expected, `${counted} of ${expected} refusals are counted`);
}

type Reader = () => Promise<Received>;

/** A row of one tenant, what an attacker makes of it, and whoever reads it. */
interface Target {
  readonly row: AnyRow;
  readonly where: string;
  readonly attacks: readonly Sets[];
  readonly readers: readonly Reader[];
  readonly alert?: string;
  /** What holds while the row is altered. */
  readonly meanwhile?: () => Promise<void>;
  /** What holds when the row is again as it was. */
  readonly whole?: () => Promise<void>;
  /** What holds after the last attack. */
  readonly atLast?: () => Promise<void>;
}

/** A line of the table: a kind of row, read in one way or another. */
interface Kind {
  readonly name: string;
  readonly table: Table;
  /** With which each reader is refused. */
  readonly status: 401 | 500;
  readonly make: (tenant: TestTenant, engine: Engine) => Promise<Target>;
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

const under = (key: string) => ({ headers: { 'svc-idempotency-key': key } });

/** The rows of a table are not typed here: attacks name columns of any of them. */
async function rowOf(
  tenant: TestTenant,
  table: Table,
  isWanted: (row: AnyRow) => boolean = () => true,
): Promise<AnyRow> {
  const rows = (await tenant.rows(table)) as unknown as readonly AnyRow[];
  const row = rows.find(isWanted);
  assert.ok(row);
  return row;
}

const revealingRule = {
  description: '',
  priority: 1,
  container: '/',
  transform: 'reveal',
  permissions: ['token:read'],
};

/** A response that was given once, and is given again for the same idempotency key. */
const createdAgain = (transform: string): Kind => ({
  name: `any column of a token, where a response given again shows it by ${transform}`,
  table: 'tokens',
  status: 500,
  make: async (tenant, engine) => {
    const key = await tenant.holder({ container: '/low/', transform });
    const body = { id: 'made', type: 'token', data: secret, containers: ['/low/'] };
    const ask = () => tenant.send('POST', '/tokens', { key, body, ...under('once') });
    const first = await ask();
    assert.equal(first.status, 201, first.text);
    return {
      row: await rowOf(tenant, 'tokens'),
      where: having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'made' }),
      attacks: [{ metadata: '{"a":"b"}' }, { version: 7 }, { modified_by: 'x' }],
      readers: [ask],
      alert: 'token made',
      whole: async () => assert.equal((await ask()).text, first.text),
    };
  },
});

const kinds: readonly Kind[] = [
  {
    name: 'any column of a token, whatever is shown of it and whatever is done with it',
    table: 'tokens',
    status: 500,
    make: async (tenant, engine) => {
      const { clock } = tenant.vault;
      await tenant.token({ id: 'own', type: 'token', data: secret, containers: ['/a/'] });
      const masked = await tenant.holder({ transform: 'mask' });
      const redacted = await tenant.holder({ transform: 'redact' });
      const row = await rowOf(tenant, 'tokens');
      const body = { metadata: { a: 'b' } };
      return {
        row,
        where: having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'own' }),
        attacks: [
          ...alterations('tokens', row).filter((sets) => !('type' in sets)),
          { type: 'card' },
          { container: '/b/' },
          { mask: '"{{ data }}"' },
          { expires_at: clock.now() + 1e9 },
          { deduplicated: 1 },
        ].filter((sets) => !('expires_at' in sets) || Number(sets['expires_at']) > 1),
        readers: [
          ...[tenant.key, masked, redacted].map(
            (key) => () => tenant.send('GET', '/tokens/own', { key }),
          ),
          () => tenant.send('PATCH', '/tokens/own', { body }),
        ],
        atLast: async () => {
          assert.equal((await tenant.send('GET', '/tokens/own')).body.data, secret);
          assert.ok((await alertsOf(tenant)).every((one) => one === 'token own'));
        },
      };
    },
  },
  {
    name: 'the container of a token that is listed',
    table: 'tokens',
    status: 500,
    make: async (tenant, engine) => {
      await tenant.token({ id: 'own', type: 'token', data: secret, containers: ['/a/'] });
      return {
        row: await rowOf(tenant, 'tokens'),
        where: having(engine, 'tokens', { tenant_id: tenant.id, token_id: 'own' }),
        attacks: [{ container: '/b/' }],
        readers: ['/tokens?id=own', '/v2/tokens'].map((path) => () => tenant.send('GET', path)),
        meanwhile: async () => {
          const alerts = (await alertsOf(tenant)).length;
          tenant.vault.clock.advance(1001);
          const cut = await tenant.send('GET', '/tokens/export').catch(() => undefined);
          assert.equal(cut?.text.includes(secret) ?? false, false);
          assert.ok((await alertsOf(tenant)).length > alerts, 'an export has an alert as well');
        },
        whole: async () => {
          assert.equal((await tenant.send('GET', '/tokens/own')).body.data, secret);
          assert.ok((await alertsOf(tenant)).every((one) => one === 'token own'));
        },
      };
    },
  },
  ...['reveal', 'mask', 'redact'].map(createdAgain),
  {
    name: 'any column of an application, and its keys open nothing',
    table: 'applications',
    status: 401,
    make: async (tenant) => {
      await tenant.token({ id: 'own', type: 'token', data: secret });
      const key = await tenant.application({ type: 'public', permissions: ['token:create'] });
      const row = await rowOf(tenant, 'applications', ({ type }) => type === 'public');
      return {
        row,
        where: `application_id = '${row['application_id']}'`,
        attacks: [...alterations('applications', row), { rules: JSON.stringify([revealingRule]) }],
        readers: [() => tenant.send('GET', '/tokens/own', { key })],
      };
    },
  },
  {
    name: 'rules of an application that is managed: no change makes them good',
    table: 'applications',
    status: 500,
    make: async (tenant) => {
      await tenant.application({ type: 'public', permissions: ['token:create'] });
      const row = await rowOf(tenant, 'applications', ({ type }) => type === 'public');
      const path = `/applications/${row['application_id']}`;
      const [key] = JSON.parse(String(row['key_ids']));
      const body = { name: 'x', permissions: ['token:create'] };
      const asks: readonly (readonly [string, string, object?])[] = [
        ['GET', path],
        ['PUT', path, body],
        ['POST', `${path}/keys`],
        ['GET', `${path}/keys`],
        ['GET', `${path}/keys/${key}`],
      ];
      return {
        row,
        where: `application_id = '${row['application_id']}'`,
        attacks: [{ rules: JSON.stringify([revealingRule]) }],
        readers: asks.map(
          ([method, at, sent]) =>
            () =>
              tenant.send(method, at, { key: tenant.managementKey, body: sent }),
        ),
        meanwhile: async () => {
          const sent = { key: tenant.managementKey };
          assert.equal((await tenant.send('DELETE', path, sent)).status, 204, 'it can be removed');
        },
      };
    },
  },
  {
    name: 'any column of a key where keys are shown, and it can be removed',
    table: 'api_keys',
    status: 500,
    make: async (tenant, engine) => {
      const row = await rowOf(tenant, 'api_keys', ({ created_by }) => created_by !== null);
      const where = `key_id = '${row['key_id']}'`;
      const path = `/applications/${row['application_id']}`;
      const manage = (method: string, at: string, body?: unknown) =>
        tenant.send(method, at, { key: tenant.managementKey, body });
      const paths = [path, `${path}/keys`, `${path}/keys/${row['key_id']}`];
      const update = { name: 'x', permissions: ['token:create'] };
      return {
        row,
        where,
        attacks: [{ created_at: Number(row['created_at']) - 1000 }, { created_by: null }],
        readers: [...paths.map((at) => () => manage('GET', at)), () => manage('PUT', path, update)],
        whole: async () => {
          for (const at of paths) assert.equal((await manage('GET', at)).status, 200, at);
        },
        atLast: async () => {
          const sets = { created_by: null };
          await write(engine, tenant.vault, { table: 'api_keys', where, sets });
          const removed = await manage('DELETE', `${path}/keys/${row['key_id']}`);
          assert.equal(removed.status, 204);
        },
      };
    },
  },
  {
    name: 'any column of a session',
    table: 'sessions',
    status: 401,
    make: async (tenant) => {
      await tenant.token({ id: 'own', type: 'token', data: secret });
      const open = await tenant.application({ type: 'public', permissions: ['token:create'] });
      const { body: session } = await tenant.send('POST', '/sessions', { key: open });
      const grant = { nonce: session.nonce, permissions: ['token:create'] };
      await tenant.send('POST', '/sessions/authorize', { body: grant });
      const row = await rowOf(tenant, 'sessions');
      const ask = () => tenant.send('GET', '/tokens/own', { key: session.session_key });
      return {
        row,
        where: `session_id = '${row['session_id']}'`,
        attacks: [...alterations('sessions', row), { permissions: '["token:read"]' }],
        readers: [ask],
        atLast: async () =>
          assert.equal((await ask()).status, 403, 'as it was, it is only not allowed to'),
      };
    },
  },
  {
    name: 'any column of the tenant, for all of its keys and for no other tenant',
    table: 'tenants',
    status: 401,
    make: async (tenant) => {
      const { vault } = tenant;
      const other = await newTenant(vault);
      const row = await rowOf(tenant, 'tenants');
      const askAs = (one: TestTenant) =>
        one.send('GET', '/tenants/self', { key: one.managementKey });
      return {
        row,
        where: `tenant_id = '${tenant.id}'`,
        attacks: [
          // The time until which a tenant is away withholds it at most, as the removal of its row does.
          ...alterations('tenants', row).filter(
            (sets) => !('deleted_at' in sets || 'away_until' in sets),
          ),
          { quotas: '{"cvc_retention":31536000000}' },
          { settings: '{"fingerprint_tokens":"false"}' },
          { type: 'production' },
          { keyring: Buffer.from((await other.rows('tenants'))[0]?.keyring ?? []) },
          { keyring: Buffer.alloc(0) },
        ],
        readers: [() => askAs(tenant)],
        meanwhile: async () => {
          assert.equal((await askAs(other)).status, 200);
          await runJob(vault, 'expire card codes');
          await runJob(vault, 'sign log checkpoints');
        },
        atLast: async () => assert.equal((await askAs(tenant)).status, 200),
      };
    },
  },
  {
    name: 'any column of a token intent',
    table: 'token_intents',
    status: 500,
    make: async (tenant, engine) => {
      const key = await tenant.application({
        permissions: ['token-intent:create', 'token-intent:read', 'token:create'],
      });
      const body = { type: 'token', data: secret };
      const { id } = (await tenant.send('POST', '/token-intents', { key, body })).body;
      const row = await rowOf(tenant, 'token_intents');
      return {
        row,
        where: having(engine, 'token_intents', { token_intent_id: id }),
        attacks: [
          { type: 'card' },
          { fingerprint: 'x' },
          { version: 2 },
          { code_expires_at: 1 },
          { created_by: 'x' },
          { created_at: Number(row['created_at']) + 1 },
          { expires_at: Number(row['expires_at']) + 1 },
        ],
        readers: [
          () => tenant.send('GET', `/token-intents/${id}`, { key }),
          () => tenant.send('POST', '/tokens', { key, body: { token_intent_id: id } }),
        ],
      };
    },
  },
  {
    name: 'any column of a token intent that a response given again shows',
    table: 'token_intents',
    status: 500,
    make: async (tenant, engine) => {
      const key = await tenant.application({
        permissions: ['token-intent:create', 'token-intent:read'],
        rules: [revealingRule],
      });
      const sent = { key, body: { type: 'token', data: secret } };
      const { id } = (await tenant.send('POST', '/token-intents', sent)).body;
      const body = { value: `{{ token_intent: ${id} }}` };
      const ask = () => tenant.send('POST', '/detokenize', { key, body, ...under('once') });
      const first = await ask();
      assert.ok(first.text.includes(secret));
      assert.equal((await ask()).text, first.text);
      const row = await rowOf(tenant, 'token_intents');
      return {
        row,
        where: having(engine, 'token_intents', { token_intent_id: id }),
        attacks: [
          { type: 'card' },
          { type: 'none' },
          { fingerprint: 'x' },
          { expires_at: Number(row['expires_at']) + 1 },
        ],
        readers: [ask],
        alert: `token_intent ${id}`,
        whole: async () => assert.equal((await ask()).text, first.text),
      };
    },
  },
];

onBothEngines('a row that was altered outside the vault', (engine) => {
  const tenants = tenantsOf(engine);

  for (const { name, table, status, make } of kinds) {
    test(`${status}: ${name}`, async () => {
      const tenant = await tenants();
      const { row, where, attacks, readers, alert, ...holds } = await make(tenant, engine);
      await assertCounted(tenant, async () => {
        for (const sets of attacks) {
          await write(engine, tenant.vault, { table, where, sets });
          for (const ask of readers) await assertRefused({ tenant, sets, status, ask, alert });
          await holds.meanwhile?.();
          const whole = Object.fromEntries(
            Object.keys(sets).map((column) => [column, row[column] ?? null]),
          );
          await write(engine, tenant.vault, { table, where, sets: whole });
          await holds.whole?.();
        }
      });
      await holds.atLast?.();
    });
  }

  for (const column of ['version', 'last_used_at', 'created_at']) {
    test(`204: an application is deleted with a key whose ${column} nobody can read, and none works`, async () => {
      const tenant = await tenants();
      const { vault } = tenant;
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

  test('401: the row of a deleted key that is put back', async () => {
    const tenant = await tenants();
    const { vault } = tenant;
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
    await assertCounted(tenant, () =>
      assertRefused({ tenant, sets: { row: 'put back' }, status: 401, ask }),
    );
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
});
