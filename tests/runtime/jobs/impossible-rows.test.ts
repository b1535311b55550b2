/** Rows that somebody else put into the database stop no job for other tenants, and are reported. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour, minute, parseInstant } from '../../../src/base/clock.ts';
import { batchesPerTurn, workOff } from '../../../src/runtime/jobs/batches.ts';
import { duePages } from '../../../src/store/queries/due-tenants.ts';
import { shapes } from '../../../src/store/tables.ts';
import { notOnCitus } from '../../support/citus-cluster.ts';
import { type Engine, engineOf, onBothEngines } from '../../support/engines.ts';
import { runJob } from '../../support/jobs.ts';
import { signCheckpoints } from '../../support/logs.ts';
import { equations } from '../../support/sql.ts';
import { newTenant, type TestTenant } from '../../support/tenant.ts';
import { startVault } from '../../support/vault.ts';

const altered = { code: 'integrity' };
const beyond = '9223372036854775807';
const long = '-9223372036854775807';
const restless = { now: () => 0, pause: async () => undefined };

async function prepare(t: TestContext, engine: Engine) {
  const vault = await startVault(t, engine);
  const [harmed, other] = [await newTenant(vault), await newTenant(vault)];
  const write = (sql: string) => engine.run(vault.place, sql);
  return { vault, harmed, other, write };
}

async function expiring({ vault, token }: TestTenant, id: string): Promise<void> {
  const expires_at = new Date(vault.clock.now() + minute).toISOString();
  await token({ id, type: 'token', data: id, expires_at });
}

const idsOf = async ({ rows }: TestTenant) => (await rows('tokens')).map((row) => row.token_id);

onBothEngines('a row that the vault cannot have written', (engine) => {
  const having = (tenant: TestTenant) =>
    equations(engine, 'tokens', { tenant_id: tenant.id, token_id: 'harmed' }).join(' and ');

  for (const column of ['version', 'created_at', 'expires_at']) {
    test(`by its ${column} stops the expiry of no other token, and is reported`, async (t) => {
      const { vault, harmed, other, write } = await prepare(t, engine);
      for (const id of ['harmed', 'due-1']) await expiring(harmed, id);
      await expiring(other, 'due-2');
      const value = column === 'expires_at' ? long : beyond;
      await write(`update tokens set ${column} = ${value} where ${having(harmed)}`);
      vault.clock.advance(hour);
      await assert.rejects(runJob(vault, 'expire tokens'), altered);
      assert.deepEqual(await idsOf(other), []);
      const left = await write('select count(*) as count from tokens');
      assert.deepEqual(
        left.map(({ count }) => Number(count)),
        [1],
      );
    });
  }

  test('as work that is due stops no job, and is reported', async (t) => {
    const { vault, other, write } = await prepare(t, engine);
    const works = ['checkpoint', 'old logs', 'deliveries', 'tenant'];
    for (const work of works) {
      await write(
        `insert into due_work (tenant_id, work, due_at) values ('${other.id}', '${work}', ${long})`,
      );
    }
    await expiring(other, 'due-1');
    await assert.rejects(signCheckpoints(vault), altered);
    assert.equal((await other.rows('checkpoints')).length, 1);
    const gone = await newTenant(vault);
    await gone.send('DELETE', '/tenants/self', { key: gone.managementKey });
    await assert.rejects(runJob(vault, 'remove deleted tenants'), altered);
    assert.deepEqual(await gone.rows('applications'), []);
    for (const job of ['remove old logs', 'remove old events']) {
      await assert.rejects(runJob(vault, job), altered);
    }
  });

  test('among the checkpoints of one tenant keeps those of no other back', async (t) => {
    const { vault, harmed, other, write } = await prepare(t, engine);
    await signCheckpoints(vault);
    await write(`update checkpoints set seq = ${beyond} where tenant_id = '${harmed.id}'`);
    for (const { token } of [harmed, other]) await token({ type: 'token', data: 'x' });
    await assert.rejects(signCheckpoints(vault), altered);
    assert.equal((await other.rows('checkpoints')).length, 2);
  });
});

/** Tokens that are due since long ago, of a tenant that never was; each by its own statement of SQL. */
function orphans({ name }: Engine, count: number): string {
  const id =
    name === 'sqlite' ? "cast('orphan' || n as blob)" : "convert_to('orphan' || n, 'UTF8')";
  const others: Readonly<Record<string, string>> = {
    tenant_id: '77',
    token_id: id,
    expires_at: '1',
    fingerprint: 'null',
  };
  const { columns } = shapes.tokens;
  return `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
    insert into tokens (${columns}) select ${columns.map((one) => others[one] ?? one)}
    from numbers, (select * from tokens limit 1) one`;
}

const until = parseInstant(4_000_000_000_000);
const expiry = { table: 'tokens', column: 'expires_at', until } as const;

onBothEngines('rows of no tenant', (engine) => {
  test('do not hide what is due behind them, however many there are, and are reported', {
    skip: notOnCitus('its tables do not take the statements that write such rows'),
  }, async (t) => {
    const { vault, harmed, other, write } = await prepare(t, engine);
    for (const tenant of [harmed, other]) await expiring(tenant, 'due-1');
    await write(orphans(engine, 7));
    const { store } = vault.running.vault;
    const found: string[] = [];
    for await (const page of duePages(store, { ...expiry, rowsMax: 2 })) {
      found.push(...page.tenants.map(({ id }) => id));
    }
    assert.deepEqual(found.sort(), [harmed.id, other.id].sort());
    vault.clock.advance(hour);
    await assert.rejects(runJob(vault, 'expire tokens'), {
      ...altered,
      message: /^rows of tokens that are due by expires_at belong to no tenant/,
    });
    assert.deepEqual([await idsOf(harmed), await idsOf(other)], [[], []]);
  });

  test('of a tenant whose id is not there either, are reported', {
    skip: notOnCitus('its tables do not take the statements that write such rows'),
  }, async (t) => {
    const { vault, harmed, write } = await prepare(t, engine);
    const key = await harmed.application({ type: 'public', permissions: ['token:create'] });
    await harmed.send('POST', '/sessions', { key });
    await write("update sessions set tenant_id = '11111111-2222-4333-8444-555555555555'");
    vault.clock.advance(2 * day);
    await assert.rejects(runJob(vault, 'remove sessions'), altered);
  });
});

test('more rows of no tenant than a job looks at end no run of it', async (t) => {
  const engine = engineOf('sqlite');
  const { vault, other, write } = await prepare(t, engine);
  await expiring(other, 'due-1');
  await write(orphans(engine, 50_001));
  await write(
    'update tokens set tenant_id = 4294967296 where rowid = (select max(rowid) from tokens)',
  );
  vault.clock.advance(hour);
  await assert.rejects(runJob(vault, 'expire tokens'), altered);
  assert.deepEqual(await idsOf(other), []);
});

onBothEngines('a tenant whose rows come due faster than they are removed', (engine) => {
  test('keeps those of no other tenant from being removed', async (t) => {
    const { vault, harmed, other } = await prepare(t, engine);
    for (const tenant of [harmed, other]) await expiring(tenant, 'due-1');
    vault.clock.advance(hour);
    const stopping = new AbortController();
    const asked = new Set<string>();
    let batches = 0;
    await workOff({ ...vault.running.vault, timer: restless }, stopping.signal, {
      due: expiry,
      rowsMax: 1,
      // Until the other is asked there is always more.
      find: async ({ tenant }) => (asked.add(tenant.id).size === 1 ? [1] : []),
      decide: async (rows) => {
        if (++batches > 3 * batchesPerTurn) stopping.abort();
        return { change: {}, entries: [], count: rows.length };
      },
    });
    assert.equal(asked.size, 2);
    assert.equal(batches, batchesPerTurn);
    assert.equal(stopping.signal.aborted, false);
  });
});
