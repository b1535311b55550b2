/**
 * What the vault does where Citus spreads its tables over machines, as far as one machine can show it: a database
 * that says its tables are distributed gets statements of one tenant each. It was not run on Citus here.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import type { TenantId } from '../../src/base/ids.ts';
import type { Change } from '../../src/store/change.ts';
import { countedTables } from '../../src/store/migrations/stored-sizes.ts';
import { openStore } from '../../src/store/open/open.ts';
import {
  distributionFacts,
  distributionStatements,
} from '../../src/store/postgres/distribution.ts';
import { codeOf, violationOf } from '../../src/store/postgres/violation.ts';
import { storedBytesOf } from '../../src/store/queries/stored-bytes.ts';
import { shapes } from '../../src/store/tables.ts';
import { entry, token } from '../support/changes.ts';
import { isCitus, notOnCitus } from '../support/citus-cluster.ts';
import { engineOf } from '../support/engines.ts';
import { hold } from '../support/locks.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';

const engine = engineOf('postgres');

function failureOf(fields: Partial<pg.DatabaseError> & { readonly message: string }) {
  return Object.assign(new pg.DatabaseError(fields.message, 1, 'error'), fields);
}

test('a constraint is known by its name, also with the number of a shard behind it', () => {
  for (const [constraint, table, name] of [
    ['tokens_fingerprint', 'tokens', 'fingerprint'],
    ['tokens_fingerprint_102034', 'tokens', 'fingerprint'],
    ['tokens_key_102034', 'tokens', 'key'],
    ['token_intents_key_102040', 'token_intents', 'key'],
    ['webhook_failures_key_1020400', 'webhook_failures', 'key'],
    ['log_removals_key', 'log_removals', 'key'],
    ['logs_key_102100', 'logs', 'key'],
  ] as const) {
    const message = `duplicate key value violates unique constraint "${constraint}"`;
    const expected = { table, name };
    assert.deepEqual(violationOf(failureOf({ code: '23505', constraint, message })), expected);
    const passedOn = failureOf({ code: 'XX000', message: `worker: ERROR:  ${message}` });
    assert.deepEqual(violationOf(passedOn), expected);
  }
});

test('an error that a coordinator passes on keeps its meaning, and any other one stays internal', () => {
  const coded = (message: string) => codeOf(failureOf({ code: 'XX000', message }));
  assert.equal(coded('ERROR:  division by zero'), '22012');
  assert.equal(coded('could not open file'), 'XX000');
  const foreign = failureOf({ code: '23505', constraint: 'others_key', message: 'duplicate' });
  assert.equal(violationOf(foreign), undefined);
  const value = failureOf({ code: '22012', message: 'division by zero' });
  assert.equal(violationOf(value), undefined);
});

/** A store over a database that says of itself that its tables are distributed. */
async function distributedStore(t: { after(close: () => Promise<void>): void }) {
  const place = await engine.place(t as never);
  await (await engine.open(place)).close();
  if (!isCitus()) {
    await engine.run(place, 'create table pg_dist_partition (logicalrelid regclass not null)');
    await engine.run(place, `insert into pg_dist_partition values ('tokens')`);
  }
  const commits: string[][] = [];
  const store = await openStore({
    ...place,
    newStreamId: randomUUID,
    onCommitted: (entries) => commits.push(entries.map(({ tenant_id }) => tenant_id)),
  });
  t.after(() => store.close());
  return { place, store, commits };
}

const tenants = Array.from({ length: 4 }, () => randomUUID() as TenantId);

const creationOf = (tenant_id: TenantId, id: string): Change => ({
  insert: { tokens: [{ ...token(id), tenant_id }] },
  entries: [{ ...entry(id), tenant_id }],
});

test('a backup of distributed tables is refused, says what to do instead, and leaves nothing behind', async (t) => {
  const { place } = await distributedStore(t);
  const parent = temporaryDirectory(t);
  for (const words of [
    ['backup', join(parent, 'one')],
    ['backup', '--keep', '14', join(parent, 'many')],
  ]) {
    const { code, stdout, stderr } = await runCommand(words, environmentOf(place));
    assert.equal(code, 1, stdout);
    assert.match(stderr, /tables are distributed over several servers.*No backup was made/);
    assert.match(
      stderr,
      /citus_create_restore_point and base backups, or .*"strongroom database copy"/,
    );
  }
  const left = readdirSync(parent, { recursive: true, withFileTypes: true });
  assert.deepEqual(
    left.filter((one) => one.isFile()),
    [],
  );
});

test('where tables are distributed, a group is one statement for each tenant', async (t) => {
  const { store, commits } = await distributedStore(t);
  const changes = tenants.flatMap((id) => [creationOf(id, 'one'), creationOf(id, 'two')]);
  const outcomes = await Promise.all(changes.map((change) => store.commit(change)));
  assert.deepEqual(
    outcomes,
    changes.map(() => ({})),
  );
  for (const commit of commits) assert.equal(new Set(commit).size, 1, 'of one tenant');
  const [first, ...others] = tenants;
  assert.ok(first);
  const again = await Promise.all(
    [first, ...others].map((id) => store.commit(creationOf(id, id === first ? 'one' : 'three'))),
  );
  assert.deepEqual(again, [{ conflict: 'tokens.key' }, {}, {}, {}]);
});

test('where tables are distributed, a tenant whose rows are locked keeps no other tenant waiting', async (t) => {
  const { place, store } = await distributedStore(t);
  const [held, ...others] = [0, 1, 2].map(
    (n) => `0000000${n}-0000-4000-8000-000000000000` as TenantId,
  );
  assert.ok(held);
  const created = creationOf(held, 'held');
  assert.deepEqual(await store.commit(created), {});
  const release = await hold(t, place, `select 1 from tokens where tenant_id = 0 for update`);
  let isDone = false;
  const [token] = created.insert?.tokens ?? [];
  assert.ok(token);
  const replaced = store.commit({
    replace: { tokens: [{ ...token, version: token.version + 1 }] },
    entries: created.entries,
  });
  const waiting = replaced.then((outcome) => {
    isDone = true;
    return outcome;
  });
  const outcomes = await Promise.all(others.map((id) => store.commit(creationOf(id, 'free'))));
  assert.deepEqual(outcomes, [{}, {}]);
  assert.equal(isDone, false);
  await release();
  assert.deepEqual(await waiting, {});
});

test('where tables are distributed, reads of one turn are one query for each tenant', async (t) => {
  const { store } = await distributedStore(t);
  await Promise.all(tenants.map((id) => store.commit(creationOf(id, `of ${id}`))));
  const read = (tenant_id: TenantId, id: string) =>
    store.get('tokens', { tenant_id, token_id: `of ${id}` as never });
  const rows = await Promise.all(
    tenants.flatMap((id) => [read(id, id), read(id, id), read(id, tenants[0] ?? '')]),
  );
  assert.deepEqual(
    rows.map((row) => row?.tenant_id),
    tenants.flatMap((id) => [id, id, id === tenants[0] ? id : undefined]),
  );
  const prepared = sql<{
    statement: string;
  }>`select statement from pg_prepared_statements where name like '% tokens %'`;
  const statements = await store.select((db) => ({ compile: () => prepared.compile(db) }));
  assert.ok(statements.length > 0);
  for (const { statement } of statements) assert.match(statement, /r\.tenant_id = \$1/);
});

test('where tables are distributed and have no triggers, stored bytes count and have ceilings', async (t) => {
  const { place, store } = await distributedStore(t);
  for (const table of isCitus() ? [] : Object.keys(countedTables)) {
    for (const action of ['insert', 'update', 'delete']) {
      await engine.run(place, `drop trigger if exists stored_bytes_${table}_${action} on ${table}`);
    }
  }
  const [first, second] = tenants;
  assert.ok(first && second);
  const bytesOf = async (tenant: TenantId) => {
    const rows = await store.select<{ readonly bytes: number | string }>(storedBytesOf(tenant));
    return rows.reduce((sum, { bytes }) => sum + Number(bytes), 0);
  };
  assert.deepEqual(await store.commit(creationOf(first, 'one')), {});
  const one = await bytesOf(first);
  assert.ok(one > 400, String(one));
  const ceiling = (tenant_id: TenantId) =>
    ({ quota: 'token_storage', tenant_id, bytes: 2 * one }) as const;
  const under = (tenant: TenantId, id: string) => ({
    ...creationOf(tenant, id),
    ceilings: [ceiling(tenant)],
  });
  const names = ['two', 'six', 'ten'].map((name) => under(first, name));
  const outcomes = await Promise.all([
    ...names.map((change) => store.commit(change)),
    store.commit(under(second, 'one')),
  ]);
  const refused = outcomes.filter(({ conflict }) => conflict === 'stored_bytes.token_storage');
  assert.equal(refused.length, 2, JSON.stringify(outcomes));
  assert.equal(await bytesOf(first), 2 * one);
  assert.equal(await bytesOf(second), one);
  const removed = { tenant_id: first, token_id: 'one', version: 1 } as never;
  const gone = { ...entry('one', 'delete'), tenant_id: first };
  assert.deepEqual(await store.commit({ remove: { tokens: [removed] }, entries: [gone] }), {});
  assert.equal(await bytesOf(first), one);
});

test('every table of the vault is distributed by its tenant, or copied to every server', () => {
  const statements = distributionStatements();
  const names = statements.map(({ table }) => table);
  assert.deepEqual(
    names.toSorted(),
    [...Object.keys(shapes), 'rate_limits', 'schema_version'].sort(),
  );
  const copied = statements.filter(({ statement }) => /create_reference_table/.test(statement));
  assert.deepEqual(copied.map(({ table }) => table).sort(), [
    'api_keys',
    'proxy_addresses',
    'rate_limits',
    'schema_version',
    'tenant_hosts',
    'tenants',
    'vault_keys',
  ]);
  const byTenant = statements.filter(({ statement }) => /'tenant_id'/.test(statement));
  assert.equal(copied.length + byTenant.length, statements.length);
});

test('tables that lie otherwise are named, and those that are on one server yet', async () => {
  const rows = {
    pg_extension: [{ extversion: '13.0-1' }],
    pg_dist_partition: [
      { name: 'tenants', method: 'n', key: null },
      { name: 'tokens', method: 'h', key: 'token_id' },
      { name: 'logs', method: 'h', key: 'tenant_id' },
    ],
    to_regclass: ['tenants', 'tokens', 'logs', 'checkpoints'].map((name) => ({ name })),
  };
  const facts = await distributionFacts(async (text) => ({
    rows: Object.entries(rows).find(([word]) => text.includes(word))?.[1] ?? [],
  }));
  assert.equal(facts.version, '13.0-1');
  assert.deepEqual(facts.wrong, ['tokens']);
  const missing = facts.missing.map(({ table }) => table);
  assert.deepEqual(missing, ['checkpoints']);
});

test('a database without Citus is refused with what to do, and nothing changes', {
  skip: notOnCitus('it has Citus'),
}, async (t) => {
  const place = await engine.place(t);
  await (await engine.open(place)).close();
  const { code, stderr } = await runCommand(['database', 'distribute'], environmentOf(place));
  assert.equal(code, 1);
  assert.match(stderr, /does not have the extension citus.*create extension citus/);
  const several = new URL(place.databaseUrl ?? '');
  const hosts = `127.0.0.1:${await freePort()},${several.host}`;
  const { code: refusedToo, stderr: ofSeveral } = await runCommand(['database', 'distribute'], {
    ...environmentOf(place),
    STRONGROOM_DATABASE_URL: several.href.replace(several.host, hosts),
  });
  assert.equal(refusedToo, 1);
  assert.match(ofSeveral, /does not have the extension citus/);
  const embedded = { STRONGROOM_DATA_DIR: temporaryDirectory(t) };
  const refused = await runCommand(['database', 'distribute'], embedded);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /STRONGROOM_DATABASE_URL/);
  const printed = await runCommand(['database', 'distribute', '--print'], {});
  assert.equal(printed.code, 0);
  assert.match(printed.stdout, /create_reference_table\('tenants'\);\n/);
});
