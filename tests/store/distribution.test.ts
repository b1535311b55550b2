/**
 * Tenants can be spread over machines: on both engines every key begins with the tenant, nothing counts
 * upwards across tenants, and no statement takes rows of more than one. Read from the real schema, and from the
 * statements that a vault really makes.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pushingTo } from '../support/collector.ts';
import { startDestination } from '../support/destination.ts';
import { type EngineName, engineOf, onBothEngines } from '../support/engines.ts';
import { environmentOf, runProcess, spawnVault, withCode } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type Unbound, unboundQueries } from '../support/tenant-bound.ts';
import { takeTour } from '../support/tour.ts';
import { routesOf, startVault } from '../support/vault.ts';

/** The keys that begin with something else. On a sharded database these tables are copied to every node. */
const otherKeys: Readonly<Record<string, string>> = {
  'api_keys (key_hash)': 'the directory of keys: a key is all that a request has at first; ADR 3',
  'proxy_addresses (address)':
    'the directory of proxies: a call has no tenant before its proxy is found',
  'tenant_hosts (host)': 'the directory of hosts, of which no two tenants have one',
  'tenants (name)': 'the directory of tenants, by the name that the operator gave',
  'tenants (null)': 'the directory of tenants, by the number that follows from the id',
  'vault_keys (name)': "the vault's own keys, of which there is one for webhooks of all tenants",
  'tenants (created_at)': 'the directory of tenants, the oldest first',
  'due_work (work)': 'what is due of any tenant, for jobs',
  ...Object.fromEntries(
    [
      'tokens (expires_at)',
      'tokens (code_expires_at)',
      'token_intents (expires_at)',
      'token_intents (code_expires_at)',
      'replies (next_expiry_at)',
      'sessions (expires_at)',
      'approvals (expires_at)',
      'client_keys (expires_at)',
      'reactor_runs (expires_at)',
      'reactor_runs (due_at)',
      'events (created_at)',
      'event_sequences (ended_at)',
      'deliveries (created_at)',
    ].map((index) => [
      index,
      'whose rows are due, for jobs; unique of no machine, so each has its own part',
    ]),
  ),
  'rate_limits (key)': 'counters by key or address, before the tenant is known; they may be lost',
};

/** Tables without a tenant of their own. */
const withoutTenant = ['rate_limits', 'schema_version', 'vault_keys'];

/** Queries that are not about one tenant. */
const acrossTenants: readonly {
  readonly is: RegExp;
  readonly why: string;
  /** Where only one engine asks it. */
  readonly engine?: EngineName;
}[] = [
  {
    is: /^(?:select|update|delete)\b.* api_keys .*\bwhere (?:\w+\.)?key_hash = /,
    why: 'the directory of keys, asked for the hash of one; ADR 3',
  },
  {
    is: /^(?:select|delete)\b.* proxy_addresses .*\bwhere (?:\w+\.)?address = /,
    why: 'the directory of proxies, asked for one address',
  },
  {
    is: /^select distinct tenant_id from sign_in_methods where kind = \S+ order by tenant_id$/,
    why: "whose people the operator's rules and the identity provider's notices are about",
  },
  { is: /^select tenant_id from tenants limit \S+$/, why: 'at a start: whether there is a tenant' },
  {
    is: /^(?:select|update|delete)\b.* tenant_hosts .*\bwhere (?:\w+\.)?host = /,
    why: 'the directory of hosts that tenants were given, asked for one',
  },
  {
    is: /^select tenant_id, name from tenants where name = /,
    why: 'the tenant that the operator names in a command',
  },
  {
    is: /^select tenant_id as owner, \w+ as due from \w+ where \w+ between .+ order by \w+, tenant_id limit \S+$/,
    why: 'the tenants whose rows are due, for jobs that then go through them one by one',
  },
  {
    is: /^select 1 as found from \w+ where \w+ <= \S+ and not \(.+\) limit 1$/,
    why: 'whether rows are due that no tenant can be found by, because somebody else wrote them',
  },
  {
    is: /^select \* from due_work where work = \S+ and due_at between .+ order by due_at, tenant_id limit \S+$/,
    why: 'what is due of tenants, for jobs that then go through them one by one',
  },
  {
    is: /^select tenant_id from due_work where work = \S+ and due_at < \S+ limit \S+$/,
    why: 'whether work is due at a time that is none, because somebody else wrote it',
  },
  {
    is: /^select \* from tenants order by tenant_id limit \S+$/,
    why: 'at a start without the row that proves the root key: a few tenants, which prove it instead',
  },
  {
    is: /^select tenant_id from tenants where substr\(tenant_id, 1, 8\) in \(/,
    why: 'the ids behind the numbers by which rows name their tenants',
  },
  {
    is: /^select tenant_id from tenants where type = \S+ and deleted_at is null limit \S+$/,
    why: 'at a start: whether the root key lies beside the database of a production tenant',
    engine: 'sqlite',
  },
  {
    is: /^select tenant_id from \w+ (?:where tenant_id > \S+ )?order by tenant_id limit \S+$/,
    why: 'the tenants in a copy that its operator verifies, one after the other',
  },
  {
    is: /^select webhook_id from webhooks limit \S+$/,
    why: 'whether anybody has a webhook, without which nothing is looked for',
  },
  {
    is: /^select tenant_id as owner from events where sequence is null and tenant_id between .+ group by tenant_id$/,
    why: 'the tenants whose events wait to be dispatched, one after the other',
  },
  {
    is: /^select tenant_id as owner from deliveries where state = 'waiting' and .+ order by tenant_id limit \S+$/,
    why: 'the tenants for which deliveries wait, by steps from one to the next, every ten minutes',
  },
  {
    is: /^select \S+ from tenants where deleted_at is null and away_until is null .+ order by created_at, tenant_id/,
    why: 'the tenants whose keys have reached their age, for a job that then goes through them one by one',
  },
  {
    is: /^select tenant_id from key_rotations where purpose in \(.+\) and started_at > \S+$/,
    why: 'the tenants whose keys were renewed since, which the query before leaves out',
  },
  { is: /^insert into logs select \* from logs where false/, why: 'a probe, which writes no row' },
];

interface Facts {
  /** Each index, the primary key's among them: \`table\`, and \`first\`, the column it begins with. */
  readonly indexes: string;
  readonly tables: string;
  /** Whatever numbers rows by itself. */
  readonly counting: string;
}

const facts: Readonly<Record<EngineName, Facts>> = {
  sqlite: {
    indexes: `select t.name as "table", c.name as first
      from sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
      where t.type = 'table' and c.seqno = 0`,
    tables: `select name as "table" from sqlite_schema where type = 'table'`,
    counting: `select t.name from sqlite_schema t, pragma_table_info(t.name) c
      where t.name = 'sqlite_sequence' or (c.pk > 0 and lower(c.type) = 'integer' and
        (select count(*) from pragma_table_info(t.name) where pk > 0) = 1)`,
  },
  postgres: {
    indexes: `select t.relname as "table", c.attname as first from pg_index x
      join pg_class t on t.oid = x.indrelid
      left join pg_attribute c on c.attrelid = t.oid and c.attnum = x.indkey[0]
      where t.relnamespace = 'public'::regnamespace`,
    tables: `select relname as "table" from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
    counting: `select relname as name from pg_class
      where relkind = 'S' and relnamespace = 'public'::regnamespace
      union all select attname from pg_attribute where attidentity <> ''`,
  },
};

onBothEngines('tenants can be spread over machines', (engine) => {
  const { indexes, tables, counting } = facts[engine.name];

  test('every primary key, unique constraint and index begins with the tenant', async (t) => {
    const place = await engine.place(t);
    await (await engine.open(place)).close();
    const found = await engine.run(place, indexes);
    const others = found.filter(({ first }) => first !== 'tenant_id');
    const told = others.map(({ table, first }) => `${table} (${first})`);
    assert.deepEqual(told.sort(), Object.keys(otherKeys).sort());
    const keyed = new Set(found.map(({ table }) => table));
    const names = (await engine.run(place, tables)).map(({ table }) => table);
    assert.deepEqual(
      names.filter((table) => !keyed.has(table)),
      ['schema_version'],
    );
  });

  test('no sequence gives out numbers', async (t) => {
    const place = await engine.place(t);
    await (await engine.open(place)).close();
    assert.deepEqual(await engine.run(place, counting), []);
  });

  test('no statement takes rows of more than one tenant', async (t) => {
    const { statements, tableNames } = await statementsOfTour(t, engine.name);
    for (const table of tableNames) {
      const named = new RegExp(`\\b${table}\\b`);
      assert.ok(
        statements.some((one) => named.test(one)),
        `nothing was asked of ${table}`,
      );
    }
    const unbound = statements.flatMap((one) => unboundQueries(one, tableNames));
    const isExcused = ({ query }: Unbound) => acrossTenants.some(({ is }) => is.test(query));
    assert.deepEqual(
      unbound.filter((one) => !isExcused(one)),
      [],
    );
    for (const { is, engine: only = engine.name } of acrossTenants) {
      if (only !== engine.name) continue;
      assert.ok(
        unbound.some(({ query }) => is.test(query)),
        `nothing is excused by ${is}`,
      );
    }
  });
});

test('the check distinguishes queries of one tenant from others', () => {
  const unbound = (sql: string) =>
    unboundQueries(sql, ['tokens', 'logs']).map(({ table }) => table);
  for (const sql of [
    'select * from "tokens" where "tenant_id" = ? and "token_id" = ?',
    'select * from tokens t join logs l on l.tenant_id = t.tenant_id where t.tenant_id = ?',
    'select * from (select * from tokens r where r.tenant_id = k.tenant_id offset 0) t',
    'insert into tokens (tenant_id, token_id) values (?, ?)',
    'update tokens t set version = n.version from unnest(?) n where t.tenant_id = n.tenant_id',
    'delete from tokens where tenant_id = ? and token_id = ?',
    'select 1; pragma wal_checkpoint; select * from schema_version',
  ]) {
    assert.deepEqual(unbound(sql), [], sql);
  }
  for (const [sql, ...tables] of [
    ['select * from tokens', 'tokens'],
    ['select tenant_id from tokens where token_id = ?', 'tokens'],
    ['select * from tokens where tenant_id > ?', 'tokens'],
    [
      'select * from tokens t join logs l on l.entity_id = t.token_id where t.tenant_id = ?',
      'logs',
    ],
    ['select * from tokens where tenant_id = ? union all select * from logs', 'logs'],
    [
      'select * from tokens where tenant_id = ? and token_id in (select entity_id from logs)',
      'logs',
    ],
    ['with p0 as (delete from tokens using x where token_id = 1) select 1', 'tokens'],
    ['update tokens set tenant_id = ? where token_id = ?', 'tokens'],
    ['insert into tokens (token_id) values (?)', 'tokens'],
  ] as const) {
    assert.deepEqual(unbound(sql), tables, sql);
  }
});

/** Of a vault that runs in a process of its own, all its threads included; without the making of the schema. */
async function statementsOfTour(t: TestContext, name: EngineName) {
  const engine = engineOf(name);
  const place = await engine.place(t);
  await (await engine.open(place)).close();
  const file = join(temporaryDirectory(t), 'statements');
  const recorder = new URL('../support/statement-recorder.ts', import.meta.url).href;
  const collector = await startDestination(t);
  const recording = {
    NODE_OPTIONS: `--import=${recorder}`,
    STATEMENTS_FILE: file,
    ...pushingTo(t, collector.url, collector.authority),
  };
  const start = () => spawnVault(t, environmentOf(place, withCode, recording));
  const vault = await start();
  const declared = await routesOf(await startVault(t, engineOf('sqlite')));
  const ofDefault = ['--tenant', 'default'];
  const giveHost = (host: string) =>
    runProcess(['tenant', 'hosts', 'add', host, ...ofDefault], environmentOf(place, recording));
  await takeTour(vault.url, declared, giveHost);
  await vault.kill();
  // At its next start it removes what the tenant has left behind.
  const next = await start();
  next.terminate();
  await next.finished;
  await runProcess(['logs', 'verify'], environmentOf(place, recording));
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const statements = [...new Set(lines.map((line): string => JSON.parse(line)))];
  const tableNames = (await engine.run(place, facts[name].tables))
    .map(({ table }) => String(table))
    .filter((table) => !withoutTenant.includes(table));
  return { statements, tableNames };
}
