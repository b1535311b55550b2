/** Stored bytes are counted when a database is migrated, and then with every change. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { day, hour } from '../../src/base/clock.ts';
import {
  type CountedName,
  countedTables,
  ownerSql,
  sizeSql,
} from '../../src/store/migrations/stored-sizes.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { seeded } from '../support/random.ts';
import { newTenant } from '../support/tenant.ts';
import { managementKey, startVault } from '../support/vault.ts';

onBothEngines('stored bytes', (engine) => {
  test('the upgrade counts every row that is stored already', async (t) => {
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

    async function check(when: string): Promise<void> {
      const counted = new Map<string, number>();
      for (const row of await engine.run(
        vault.place,
        'select application_id as owner, sum(bytes) as bytes from stored_bytes group by 1',
      )) {
        counted.set(hexOf(row['owner']), Number(row['bytes']));
      }
      const rows = new Map([...counted.keys()].map((owner) => [owner, 0]));
      for (const table of Object.keys(countedTables) as CountedName[]) {
        const text = `select ${ownerSql(table, table)} as owner, ${sizeSql(table, table)} as bytes from ${table}`;
        for (const row of await engine.run(vault.place, text)) {
          const owner = hexOf(row['owner']);
          rows.set(owner, (rows.get(owner) ?? 0) + Number(row['bytes']));
        }
      }
      assert.deepEqual(sorted(counted), sorted(rows), when);
    }

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
  });

  /** What leads back to schema version 4. */
  async function undone(): Promise<readonly string[]> {
    const tables = engine.name === 'postgres' ? Object.keys(countedTables) : [];
    const actions = ['insert', 'update', 'delete'];
    return [
      ...tables.flatMap((table) =>
        actions.map((action) => `drop trigger stored_bytes_${table}_${action} on ${table}`),
      ),
      'drop table stored_bytes',
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
