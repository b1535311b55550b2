/** Stored bytes are counted when a database is migrated, and then with every change. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { day, hour } from '../../src/base/clock.ts';
import { rotateTenantKeys } from '../../src/runtime/jobs/rotate-keys.ts';
import {
  type CountedName,
  countedTables,
  ownerSql,
  sizeSql,
} from '../../src/store/migrations/stored-sizes.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { onBothEngines, type Place } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { seeded } from '../support/random.ts';
import { newTenant, type TestTenant } from '../support/tenant.ts';
import { managementKey, startVault } from '../support/vault.ts';

const noTriggers =
  'distributed tables have no triggers, which count for servers of the release before';

const subscribe = async (tenant: TestTenant) => {
  const events = ['token', 'token-intent', 'session'].map((entity) => `${entity}.created`);
  const body = { name: 'all', url: 'https://hooks.example.com/', events };
  body.events.push('token.updated', 'token.deleted');
  const key = tenant.managementKey;
  assert.equal((await tenant.send('POST', '/webhooks', { key, body })).status, 201);
};

onBothEngines('stored bytes', (engine) => {
  test('the upgrade counts every row that is stored already', {
    skip: notOnCitus(noTriggers),
  }, async (t) => {
    const vault = await startVault(t, engine);
    const key = await vault.application();
    const own = await vault.application({ type: 'public', permissions: ['token:create'] });
    const body = { type: 'token', data: 'a', metadata: { a: 'b' }, search_indexes: ['{{ data }}'] };
    for (const by of [key, own]) {
      const headers = { 'svc-idempotency-key': '6cb8b4ae-5c0b-4f0e-9a51-0a6b3c1f2d11' };
      assert.equal((await vault.send('POST', '/tokens', { key: by, body, headers })).status, 201);
    }
    assert.equal((await vault.send('POST', '/sessions', { key: own })).status, 201);
    const counted = async () => {
      const sum =
        'select application_id, sum(bytes) as bytes from stored_bytes group by 1 order by 1';
      return (await engine.run(vault.place, sum)).map(({ bytes }) => Number(bytes));
    };
    const before = await counted();
    assert.equal(before.length, 2);
    await vault.stop();
    for (const statement of await undone()) await engine.run(vault.place, statement);
    const again = await startVault(t, engine, { place: vault.place });
    assert.deepEqual(await counted(), before);
    const usage = { key: managementKey };
    const { body: report } = await again.send('GET', '/tenants/self/reports/usage', usage);
    assert.equal(
      report.storage.stored_bytes,
      before.reduce((sum, one) => sum + one, 0),
    );
  });

  test('after any mix of operations the counters equal a count of the rows', async (t) => {
    const below = seeded(t);
    const vault = await startVault(t, engine);
    const tenants = [await newTenant(vault), await newTenant(vault)];
    const permissions = ['token:create', 'token-intent:create'];
    const publicKeys = await Promise.all(
      tenants.map((tenant) => tenant.application({ type: 'public', permissions })),
    );
    for (const tenant of tenants) await subscribe(tenant);
    const ids = tenants.map((): string[] => []);
    const expiry = () => new Date(vault.clock.now() + hour).toISOString();

    /** One request of one tenant, which may fail. */
    async function operate(which: number): Promise<void> {
      const tenant = tenants[which];
      const key = publicKeys[which];
      const own = ids[which];
      if (!tenant || !key || !own) return;
      const one = () => `/tokens/${own[below(own.length)] ?? randomUUID()}`;
      const body = () => ({
        type: 'token',
        data: 'ä'.repeat(below(300) + 1),
        ...(below(2) === 0 && { metadata: { a: '"quoted"', b: 'x'.repeat(below(20)) } }),
        ...(below(3) === 0 && { search_indexes: ['{{ data }}'] }),
        ...(below(3) === 0 && { mask: '{{ data | reveal_last: 2 }}' }),
        ...(below(4) === 0 && { expires_at: expiry() }),
        // Some exist already, and that change is undone among others of its group.
        ...(below(4) === 0 && { id: `chosen-by-a-caller-${below(12)}` }),
      });
      const operations: readonly (() => Promise<unknown>)[] = [
        async () => {
          const by = below(2) === 0 ? { key } : {};
          const { status, body: made } = await tenant.send('POST', '/tokens', {
            ...by,
            body: { ...body(), id: undefined },
          });
          if (status === 201) own.push(made.id);
        },
        () => tenant.send('POST', '/tokens', { body: body() }),
        () =>
          tenant.send('POST', '/tokens', {
            key,
            body: { ...body(), id: undefined },
            headers: { 'svc-idempotency-key': randomUUID() },
          }),
        () => tenant.send('PATCH', one(), { body: { data: 'b'.repeat(below(400) + 1) } }),
        () => tenant.send('PATCH', one(), { body: { metadata: { c: 'd'.repeat(below(50)) } } }),
        () => tenant.send('DELETE', one()),
        () => tenant.send('POST', '/tokenize', { body: { x: 'a', y: ['b', 'c'] } }),
        () => tenant.send('POST', '/token-intents', { key, body: { type: 'token', data: 'a' } }),
        () => tenant.send('POST', '/sessions', { key }),
      ];
      await operations[below(operations.length)]?.();
    }

    const check = (when: string) => checkCounters(vault.place, when);

    for (let round = 0; round < 6; round++) {
      // From then on some changes of a group exceed the quota.
      const public_application_storage = 20_000 + 4_000 * round;
      for (const tenant of tenants) await tenant.setQuotas({ public_application_storage });
      await Promise.all(Array.from({ length: 50 }, (_, n) => operate(n % 2)));
      await check(`round ${round}`);
    }
    vault.clock.advance(2 * day);
    for (const job of [
      'expire tokens',
      'forget replies',
      'remove sessions',
      'expire token intents',
    ])
      await runJob(vault, job);
    await check('after the jobs');
    await operate(0);
    await check('after one more');
    for (const purpose of ['search', 'fingerprint']) {
      for (const { managementKey: key } of tenants) {
        const rotation = { key, body: { purpose } };
        const { status } = await vault.send('POST', '/tenants/self/keys/rotations', rotation);
        assert.equal(status, 202);
      }
      const job = rotateTenantKeys({ ...vault.running.vault, isAlone: () => true });
      await job.run(new AbortController().signal);
      await check(`after a rotation of ${purpose} keys`);
    }
  });

  test('events of visitors count until they are removed, none is lost, and deletes go on', async (t) => {
    const vault = await startVault(t, engine);
    const tenant = await newTenant(vault);
    await subscribe(tenant);
    const permissions = ['token:create', 'token:update'];
    const key = await tenant.application({ type: 'public', permissions });
    const metadata = Object.fromEntries(
      Array.from({ length: 20 }, (_, n) => [`k${n}`, 'x'.repeat(400)]),
    );
    const created = await tenant.send('POST', '/tokens', {
      key,
      body: { type: 'token', data: 'a', metadata },
    });
    const path = `/tokens/${created.body.id}`;
    const patch = () => tenant.send('PATCH', path, { key, body: { metadata: { a: 'b' } } });
    await tenant.setQuotas({ public_application_storage: 60_000 });
    let updated = 0;
    for (; updated < 20 && (await patch()).status === 200; updated++);
    assert.ok(updated > 1 && updated < 7, `${updated} events of 9 KB`);
    const refused = await patch();
    assert.equal(refused.status, 422, refused.text);
    assert.match(refused.text, /public_application_storage/);
    const types = async () => (await tenant.rows('events')).map(({ type }) => type).sort();
    const known = ['token.created', ...Array<string>(updated).fill('token.updated')];
    assert.deepEqual(await types(), known);
    const put = await tenant.send('PATCH', path, { body: { metadata: { a: 'c' } } });
    assert.equal(put.status, 200, 'another application pays for its own');
    await tenant.setQuotas({ token_storage: 1_000 });
    assert.equal((await tenant.send('DELETE', path)).status, 204);
    assert.deepEqual(await types(), [...known, 'token.updated', 'token.deleted'].sort());
    await checkCounters(vault.place, 'after the delete');
    vault.clock.advance(31 * day);
    await runJob(vault, 'remove old events');
    await checkCounters(vault.place, 'after the events are gone');
    const { body: report } = await tenant.send('GET', '/tenants/self/reports/usage', {
      key: tenant.managementKey,
    });
    assert.equal(report.storage.stored_bytes, 0);
  });

  // The embedded database has one server.
  if (engine.name === 'postgres') {
    test('what servers of the release before write beside this one counts once, and has ceilings', {
      skip: notOnCitus(noTriggers),
    }, async (t) => {
      const vault = await startVault(t, engine);
      const key = await vault.application({ type: 'public', permissions: ['token:create'] });
      const create = async (data: string) => {
        const body = { type: 'token', data };
        const { status, text } = await vault.send('POST', '/tokens', { key, body });
        assert.equal(status, 201, text);
      };
      for (const data of ['a', 'b', 'c']) await create(data);
      await engine.run(
        vault.place,
        `update tokens set data = data || '\\x0102', version = version`,
      );
      await checkCounters(vault.place, 'after an update by a server of the release before');
      const [tenant] = await engine.run(
        vault.place,
        'select tenant_id as id, sum(bytes) as bytes from stored_bytes group by 1',
      );
      const ceiling = { tenant: tenant?.['id'], bytes: Number(tenant?.['bytes']) };
      const ceilings = JSON.stringify([{ quota: 'token_storage', ...ceiling }]);
      const grow = `update tokens set data = data || '\\x0102' returning 1`;
      for (const condition of [
        `begin_stored_bytes('${ceilings}')`,
        `set_config('strongroom.ceilings', '${ceilings}', true) is not null`,
      ]) {
        const statement = `with grown as (${grow}) select 1 / (case when ${condition} then 1 else 0 end)`;
        await assert.rejects(engine.run(vault.place, statement), /a storage quota is exceeded/);
      }
      await Promise.all([
        ...['d', 'e', 'f'].map(create),
        engine.run(
          vault.place,
          'delete from tokens where token_id = (select min(token_id) from tokens)',
        ),
      ]);
      await checkCounters(vault.place, 'after a removal by it, beside creates of this one');
    });
  }

  /** The counters are what a count of the rows gives. */
  async function checkCounters(place: Place, when: string): Promise<void> {
    const counted = new Map<string, number>();
    for (const row of await engine.run(
      place,
      'select application_id as owner, sum(bytes) as bytes from stored_bytes group by 1',
    )) {
      counted.set(hexOf(row['owner']), Number(row['bytes']));
    }
    const rows = new Map([...counted.keys()].map((owner) => [owner, 0]));
    for (const table of Object.keys(countedTables) as CountedName[]) {
      const text = `select ${ownerSql(table, table)} as owner, ${sizeSql(table, table)} as bytes from ${table}`;
      for (const row of await engine.run(place, text)) {
        if (row['owner'] === null) continue;
        const owner = hexOf(row['owner']);
        rows.set(owner, (rows.get(owner) ?? 0) + Number(row['bytes']));
      }
    }
    assert.deepEqual(sorted(counted), sorted(rows), when);
  }

  /** What leads back to schema version 4. */
  async function undone(): Promise<readonly string[]> {
    const tables = engine.name === 'postgres' ? Object.keys(countedTables) : [];
    const actions = ['insert', 'update', 'delete'];
    return [
      ...tables.flatMap((table) =>
        actions.map(
          (action) => `drop trigger if exists stored_bytes_${table}_${action} on ${table}`,
        ),
      ),
      'drop index applications_by_creation',
      'drop index reactor_versions',
      'alter table applications drop column origins',
      'alter table applications drop column egress_budget',
      'alter table applications drop column egress',
      'alter table tenants drop column away_until',
      ...[
        'approvals',
        'log_index',
        'log_pushes',
        'activity',
        'alert_marks',
        'sign_in_methods',
        'console_sessions',
        'console_links',
        'people',
      ].map((table) => `drop table ${table}`),
      'drop table key_rotations',
      'drop table fingerprint_claims',
      'drop index reactor_runs_due_by_due_at',
      'drop table stored_bytes',
      'update events set charged_to = null',
      'alter table events drop column charged_to',
      'update replies set charged_to = null',
      'alter table replies drop column charged_to',
      'alter table token_intents drop column client_key_id',
      'alter table token_intents drop column recognized',
      'drop index client_key_uses_by_id',
      'alter table client_key_uses drop column use_id',
      'alter table client_key_uses drop column proof',
      'update schema_version set version = 4',
    ];
  }
});

/** A UUID as tables of tokens store it, or as text, by its digits. */
function hexOf(owner: unknown): string {
  if (owner instanceof Uint8Array) return Buffer.from(owner).toString('hex').slice(2);
  return String(owner).replaceAll('-', '');
}

const sorted = (map: ReadonlyMap<string, number>) => [...map].sort();
