/** Two PostgreSQL servers that both take writes: without a promotion between them, nobody goes over to the other. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createEpochs } from '../../src/base/epochs.ts';
import { openStore } from '../../src/store/open/open.ts';
import { Primary } from '../../src/store/postgres/primary.ts';
import { Servers } from '../../src/store/postgres/servers.ts';
import { creation, token } from '../support/changes.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { startPostgres } from '../support/postgres.ts';
import { run, startPair, until } from '../support/standby.ts';
import { temporaryDirectory } from '../support/temporary.ts';

const hostOf = ({ url }: { readonly url: string }) => new URL(url).host;

/** The primary's commits wait for no standby any more. */
async function commitAlone({ url }: { readonly url: string }): Promise<void> {
  await run(url, "alter system set synchronous_standby_names = ''");
  await run(url, 'select pg_reload_conf()');
  await until(url, "select 1 where current_setting('synchronous_standby_names') = ''");
}

test('a writable clone is not used while the primary is full or gone, and is named', {
  skip: notOnCitus('a clone of the coordinator alone is no copy of the database'),
}, async (t) => {
  const pair = await startPair(t);
  const { primary, standby } = pair;
  const database = await pair.createDatabase();
  await run(primary.url, 'create role vault login');
  await run(primary.url, `alter database ${database} owner to vault`);
  await until(
    standby.url,
    'select 1 from pg_database join pg_roles r on datdba = r.oid and rolname = $$vault$$',
  );
  await commitAlone(primary);
  await standby.stop();
  rmSync(join(standby.directory, 'data', 'standby.signal'));

  const databaseUrl = `postgres://vault@${hostOf(primary)},${hostOf(standby)}/${database}`;
  const options = { databaseUrl, dataDir: temporaryDirectory(t), newStreamId: randomUUID };
  const store = await openStore(options);
  t.after(() => store.close());
  await store.commit(creation(token('a')));
  await standby.restart();
  await until(standby.url, 'select 1 where not pg_is_in_recovery()');

  await run(primary.url, 'alter role vault connection limit 0');
  const sessions = "pg_stat_activity where usename = 'vault'";
  await run(primary.url, `select pg_terminate_backend(pid) from ${sessions}`);
  await until(primary.url, `select 1 where not exists (select from ${sessions})`);
  const refused = { code: 'unavailable' };
  // The first may still have used a session that had ended.
  await assert.rejects(store.commit(creation(token('b'))), refused);
  await assert.rejects(store.commit(creation(token('c'))), (error: Error) => {
    assert.match(error.message, /too many connections/);
    const rival = `${hostOf(standby)} accepts writes on timeline 1 and was not promoted after`;
    assert.ok(error.message.includes(`${rival} ${hostOf(primary)}`), error.message);
    return true;
  });
  await run(primary.url, 'alter role vault connection limit -1');
  assert.deepEqual(await store.commit(creation(token('d'))), {});

  await primary.kill();
  await assert.rejects(store.commit(creation(token('e'))), refused);
  await assert.rejects(store.commit(creation(token('f'))), refused);
  await primary.restart();
  assert.deepEqual(await store.commit(creation(token('g'))), {});
  const written = await run(
    pair.urlOf(database, [standby]),
    "select 1 from pg_tables where tablename = 'tokens'",
  );
  assert.deepEqual(written, [], 'the clone has nothing of the vault');
});

test('what one thread saw promoted, no other thread of the process writes past', async (t) => {
  const pair = await startPair(t);
  const url = pair.urlOf(await pair.createDatabase(), [pair.primary, pair.standby]);
  const epochs = createEpochs();
  const threads = [new Servers(url, {}, epochs), new Servers(url, {}, epochs)] as const;
  t.after(() => Promise.all(threads.map((servers) => servers.close())));
  const [one, two] = threads;
  const [, session] = await Promise.all([one.connect({}), two.connect({})]);
  assert.equal(session.server, hostOf(pair.primary));
  await pair.promote();
  await one.survey();
  assert.ok(!session.isOpen, 'it takes no more statements');
  assert.equal((await two.connect({})).server, hostOf(pair.standby));
});

test('a thread that starts later follows no server with other data than the others have used', async (t) => {
  const [used, foreign] = await Promise.all([startPostgres(), startPostgres()]);
  t.after(() => Promise.all([used.stop(), foreign.stop()]));
  const database = new URL(await used.createDatabase()).pathname.slice(1);
  await run(foreign.url, `create database ${database}`);
  // It begins a greater timeline, as a standby that was promoted does.
  writeFileSync(join(foreign.directory, 'data', 'standby.signal'), '');
  await foreign.restart();
  await run(foreign.url, 'select pg_promote()');

  const url = `postgres://strongroom@${hostOf(used)},${hostOf(foreign)}/${database}`;
  const epochs = createEpochs();
  const first = new Servers(url, {}, epochs);
  t.after(() => first.close());
  assert.equal((await first.connect({})).server, hostOf(used));
  await used.kill();
  const later = new Servers(url, {}, epochs);
  t.after(() => later.close());
  await assert.rejects(later.connect({}), (error: Error) => {
    assert.ok(error.message.includes(`${hostOf(foreign)} has other data`), error.message);
    return true;
  });
});

test('the primary changes with a promotion, or once it is known to be none', () => {
  const primary = new Primary(createEpochs());
  assert.ok(primary.adopt(0, 3));
  assert.equal(primary.refusalOf(1, 3), 'rival');
  assert.equal(primary.refusalOf(1, undefined), 'rival');
  assert.equal(primary.refusalOf(1, 2), 'outdated');
  primary.leave(1);
  assert.ok(!primary.adopt(1, 3), 'another one that is a standby says nothing of it');
  assert.ok(primary.adopt(1, 4));
  assert.ok(primary.has(1, 4) && !primary.has(0, 3));
  assert.equal(primary.refusalOf(0, 3), 'outdated');
  primary.leave(1);
  assert.ok(primary.adopt(0, 4));

  const silent = new Primary(createEpochs());
  assert.ok(silent.adopt(0, undefined));
  assert.equal(silent.refusalOf(1, undefined), 'rival');
  assert.equal(silent.refusalOf(1, 7), 'rival', 'nobody knows which is the greater one');
  silent.leave(0);
  assert.ok(silent.adopt(1, undefined));
});
