/** Starts on a Citus database: after an upgrade, with a table on one server, and with a worker that is down. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { released } from '../../src/store/migrations/migrate.ts';
import { distributionFacts } from '../../src/store/postgres/distribution.ts';
import { openPostgres } from '../../src/store/postgres/engine.ts';
import { isCitus } from '../support/citus-cluster.ts';
import { dropTables, emptyPlace, tablesIn } from '../support/copy-places.ts';
import { engineOf, type Place } from '../support/engines.ts';
import { startPostgres } from '../support/postgres.ts';
import { environmentOf, runCommand, spawnVault, untilReady } from '../support/process.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { createApplication, request } from '../support/vault.ts';

const engine = engineOf('postgres');
const skip = !isCitus() && 'this PostgreSQL has no workers';
const asked = { STRONGROOM_DATABASE_DISTRIBUTE: 'citus' };

/** Without the tables `activity` and `log_index`. */
const earlier = released.slice(0, 18);

test('a start distributes the tables that its upgrade makes, and one that lies on one server', {
  skip,
}, async (t) => {
  const place = await emptyPlace(t, engine);
  const { databaseUrl = '', dataDir } = place;
  const options = { databaseUrl, dataDir, newStreamId: randomUUID };
  await (await openPostgres(databaseUrl, { ...options, isDistributed: true }, earlier)).close();
  const check = async () => {
    await (await openPostgres(databaseUrl, options)).close();
    const { missing, wrong } = await distributionFacts(async (text) => ({
      rows: await engine.run(place, text),
    }));
    assert.deepEqual({ missing, wrong }, { missing: [], wrong: [] });
    const made = `select 1 from pg_dist_partition
      where logicalrelid in ('activity'::regclass, 'log_index'::regclass)`;
    assert.equal((await engine.run(place, made)).length, 2);
  };
  await check();
  await engine.run(place, `select undistribute_table('activity')`);
  await check();
});

test('a worker that is down is named at the start, nothing is half done, and requests go on with it', {
  skip,
}, async (t) => {
  const cluster = await startPostgres();
  t.after(() => cluster.stop());
  const placeOf = async (): Promise<Place> => ({
    databaseUrl: await cluster.createDatabase(),
    dataDir: temporaryDirectory(t),
  });
  const [place, empty] = [await placeOf(), await placeOf()];
  await dropTables(engine, empty);
  const before = await spawnVault(t, environmentOf(place));
  const key = await createApplication(before.url);
  const body = { type: 'token', data: 'kept' };
  const { body: created } = await request(`${before.url}/tokens`, 'POST', { key, body });
  await before.kill();
  // The one without which no commit of this tenant succeeds.
  const [shard] = await engine.run(
    place,
    `select nodeport from citus_shards
      where shardid = get_shard_id_for_distribution_column('logs', '${created.tenant_id}')`,
  );
  const worker = cluster.workerServers.find(
    ({ url }) => new URL(url).port === `${shard?.['nodeport']}`,
  );
  assert.ok(worker);
  const embedded = { databaseUrl: undefined, dataDir: temporaryDirectory(t) };
  await runCommand(['database', 'migrate'], environmentOf(embedded));
  await worker.kill();

  const form =
    /coordinator that cannot reach one of its workers: .*127\.0\.0\.1:\d+.* Start that worker/;
  const copy = `database copy --from ${embedded.dataDir} --to ${empty.databaseUrl}`;
  const back = `database copy --from ${place.databaseUrl} --to ${temporaryDirectory(t)}`;
  for (const command of ['serve', 'database migrate', copy, back, `${back} --tenant default`]) {
    const { code, stderr } = await runCommand(command.split(' '), environmentOf(empty, asked));
    assert.equal(code, 1);
    assert.match(stderr, form);
    assert.match(stderr, new RegExp(`:${new URL(worker.url).port}\\b`));
    if (command.startsWith(back)) assert.match(stderr, /: --from leads to/);
  }
  const verified = await runCommand(['logs', 'verify'], environmentOf(place));
  assert.match(verified.stderr, form);
  assert.deepEqual(await tablesIn(engine, empty), [], 'nothing is half done');
  const report = await runCommand(['doctor'], environmentOf(place));
  assert.equal(report.code, 1);
  assert.match(
    report.stdout,
    /problem +distribution +the coordinator cannot reach these workers: /,
  );
  assert.doesNotMatch(report.stdout, /root key/, 'the source of the root key is as it was');

  // A vault that is there waits for its worker.
  const vault = await spawnVault(t, environmentOf(place));
  await untilReady(vault.url, 503);
  const late = await request(`${vault.url}/tokens`, 'POST', { key, body });
  assert.equal(late.status, 503);
  assert.ok(late.headers.get('retry-after'));
  await worker.restart();
  await untilReady(vault.url);
  const read = await request(`${vault.url}/tokens/${created.id}`, 'GET', { key });
  assert.equal(read.body.data, 'kept', read.text);
  const first = await spawnVault(t, environmentOf(empty, asked));
  await untilReady(first.url);
});
