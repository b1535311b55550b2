/**
 * `STRONGROOM_DATABASE_DISTRIBUTE=citus`, as far as a machine without Citus can show it: what a start refuses, and
 * that the first one distributes every table, by functions that only note it as Citus does.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { distributionStatements } from '../../src/store/postgres/distribution.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { environmentOf, runCommand } from '../support/process.ts';
import { startVault } from '../support/vault.ts';

const engine = engineOf('postgres');
const asked = { STRONGROOM_DATABASE_DISTRIBUTE: 'citus' };

const tablesIn = async (place: Place) =>
  (await engine.run(place, `select 1 from pg_class where relname in ('schema_version', 'tokens')`))
    .length;

const distributedIn = async (place: Place) =>
  (await engine.run(place, 'select logicalrelid::text as name from pg_dist_partition')).map(
    ({ name }) => String(name),
  );

/** The names that the vault uses of Citus. */
async function pretendCitus(place: Place): Promise<void> {
  await engine.run(
    place,
    `set allow_system_table_mods = on;
    insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
      select 99999, 'citus', oid, 'public'::regnamespace, false, '0' from pg_roles where rolname = current_user;
    create table pg_dist_partition (logicalrelid regclass not null, partmethod text not null, partkey text);
    create function column_to_column_name(regclass, text) returns text language sql as 'select $2';
    create function create_reference_table(text) returns void language sql
      as $$ insert into pg_dist_partition values ($1::regclass, 'n', null) $$;
    create function create_distributed_table(text, text, colocate_with text) returns void language sql
      as $$ insert into pg_dist_partition values ($1::regclass, 'h', $2) $$`,
  );
}

/** Every test on Citus has a database that a first start has distributed. */
const pretends = 'it pretends that PostgreSQL has the extension';

test('a PostgreSQL without Citus is refused by name, before anything is created in it', {
  skip: notOnCitus('it has Citus'),
}, async (t) => {
  const place = await engine.place(t);
  const { code, stderr } = await runCommand(['serve'], environmentOf(place, asked));
  assert.equal(code, 1);
  assert.match(stderr, /STRONGROOM_DATABASE_DISTRIBUTE=citus: .*create extension citus/);
  assert.equal(await tablesIn(place), 0);
  const doctor = await runCommand(['doctor'], environmentOf(place, asked));
  assert.equal(doctor.code, 1);
  assert.match(doctor.stdout, /does not have the extension citus/);
});

test('the first start distributes every table, and a later one finds nothing to do', {
  skip: notOnCitus(pretends),
}, async (t) => {
  const place = await engine.place(t);
  await pretendCitus(place);
  for (const start of ['first', 'second']) {
    const vault = await startVault(t, engine, { place, environment: asked });
    const key = await vault.application();
    const body = { type: 'token', data: start };
    assert.equal((await vault.send('POST', '/tokens', { key, body })).status, 201);
    await vault.stop();
  }
  const tables = distributionStatements().map(({ table }) => table);
  assert.deepEqual((await distributedIn(place)).sort(), tables.toSorted());
});

test('a vault with rows on one server is refused, also while it is served, and so are tables distributed otherwise', {
  skip: notOnCitus(pretends),
}, async (t) => {
  const place = await engine.place(t);
  await (await startVault(t, engine, { place })).stop();
  await pretendCitus(place);
  const started = await runCommand(['serve'], environmentOf(place, asked));
  assert.equal(started.code, 1);
  assert.match(
    started.stderr,
    /STRONGROOM_DATABASE_DISTRIBUTE=citus: .*Stop all servers .*database distribute/,
  );
  const vault = await startVault(t, engine, { place });
  const served = await runCommand(['database', 'distribute'], environmentOf(place));
  assert.equal(served.code, 1);
  assert.match(served.stderr, /A server is connected .*Stop all servers .*Nothing was changed/);
  await vault.stop();
  assert.deepEqual(await distributedIn(place), []);
  await engine.run(place, `select create_distributed_table('tokens', 'token_id', 'none')`);
  const otherwise = await runCommand(['serve'], environmentOf(place, asked));
  assert.equal(otherwise.code, 1);
  assert.match(otherwise.stderr, /distributed in another way: tokens\. Undo that/);
});
