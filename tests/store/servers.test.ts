/** Which of several PostgreSQL servers is used: the one that accepts writes, and never one left behind. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { openStore } from '../../src/store/open/open.ts';
import type { Store } from '../../src/store/store.ts';
import { creation, token } from '../support/changes.ts';
import { notOnCitus } from '../support/citus-cluster.ts';
import { engineOf } from '../support/engines.ts';
import { sharedPostgres, startPostgres } from '../support/postgres.ts';
import { run, startPair, until } from '../support/standby.ts';
import { freePort, temporaryDirectory } from '../support/temporary.ts';

const engine = engineOf('postgres');

async function open(t: TestContext, databaseUrl: string): Promise<Store> {
  const store = await openStore({
    databaseUrl,
    dataDir: temporaryDirectory(t),
    newStreamId: randomUUID,
  });
  t.after(() => store.close());
  return store;
}

function withHosts(url: string, hosts: readonly string[], query = ''): string {
  const { username, pathname } = new URL(url);
  return `postgres://${username}@${hosts.join(',')}${pathname}${query}`;
}

const hostOf = (url: string) => new URL(url).host;

test('a host that cannot be reached is passed over', async (t) => {
  const url = await (await sharedPostgres()).createDatabase(t);
  const gone = `127.0.0.1:${await freePort()}`;
  const query = '?target_session_attrs=read-write';
  const store = await open(t, withHosts(url, [gone, hostOf(url)], query));
  assert.deepEqual(await store.commit(creation(token('a'))), {});
});

test('hosts with different data are refused at the start, and nothing is changed', {
  skip: notOnCitus('its databases have the tables before the start'),
}, async (t) => {
  const other = await startPostgres();
  t.after(() => other.stop());
  const url = await (await sharedPostgres()).createDatabase(t);
  const hosts = [hostOf(url), hostOf(other.url)];
  await assert.rejects(open(t, withHosts(url, hosts)), {
    name: 'DatabaseServerError',
    message: new RegExp(`names ${hosts[1]}, which has no database of that name`),
  });
  const { pathname } = new URL(url);
  await run(other.url, `create database ${pathname.slice(1)}`);
  await assert.rejects(open(t, withHosts(url, hosts)), {
    name: 'DatabaseServerError',
    message: /names servers with different data: .* Name one primary and its standbys\.$/,
  });
  // A managed service may hide the timeline, and not what tells servers with different data apart.
  const user = `managed_${pathname.slice(-8)}`;
  for (const one of [url, `${other.url.replace(/\/postgres$/, '')}${pathname}`]) {
    await run(one, `create role ${user} login`);
    await run(one, 'revoke execute on function pg_walfile_name(pg_lsn) from public');
  }
  await assert.rejects(open(t, withHosts(url, hosts).replace('//strongroom@', `//${user}@`)), {
    name: 'DatabaseServerError',
    message: /names servers with different data/,
  });
  assert.deepEqual(await run(url, "select 1 from pg_tables where schemaname = 'public'"), []);
});

test('a database whose transactions are read-only is refused at the start', async (t) => {
  const url = await (await sharedPostgres()).createDatabase(t);
  const name = new URL(url).pathname.slice(1);
  await run(url, `alter database ${name} set default_transaction_read_only = on`);
  await assert.rejects(open(t, url), {
    name: 'DatabaseServerError',
    message:
      /names no server that accepts writes: .* is read-only\. .*default_transaction_read_only/,
  });
});

test('a server that stops accepting writes is left, and used again when it does', {
  skip: notOnCitus('a setting made in another database does not reach the workers'),
}, async (t) => {
  const place = await engine.place(t);
  const { databaseUrl = '' } = place;
  const name = new URL(databaseUrl).pathname.slice(1);
  const store = await open(t, databaseUrl);
  await store.commit(creation(token('a')));
  await run(databaseUrl, `alter database ${name} set default_transaction_read_only = on`);
  // Sessions that are open do not notice, until they are opened again.
  await run(
    databaseUrl,
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'strongroom' and datname = current_database()`,
  );
  const refused = { code: 'unavailable' };
  await assert.rejects(store.commit(creation(token('b'))), refused);
  await assert.rejects(store.get('tokens', { tenant_id: 't', token_id: 'a' } as never), refused);
  const { hostname, port, username } = new URL(databaseUrl);
  const maintenance = `postgres://${username}@${hostname}:${port}/postgres`;
  await run(maintenance, `alter database ${name} set default_transaction_read_only = off`);
  assert.deepEqual(await store.commit(creation(token('c'))), {});
});

test('of a promoted server and the old primary that came back, only the promoted one is used', {
  skip: notOnCitus('both coordinators write to the same workers'),
}, async (t) => {
  const pair = await startPair(t);
  const both = [pair.primary, pair.standby];
  const database = await pair.createDatabase();
  const store = await open(t, pair.urlOf(database, both));
  await store.commit(creation(token('a')));
  await assert.rejects(open(t, pair.urlOf(database, [pair.standby])), {
    name: 'DatabaseServerError',
    message: /is a standby\. Name the primary, promote a standby/,
  });

  // The old primary lives, and its commits wait for a standby that is none any more.
  await pair.promote();
  const outcome = await store.commit(creation(token('b'))).catch(({ code }) => code);
  if (outcome === 'unavailable') await store.commit(creation(token('c')));
  await run(pair.primary.url, "alter system set synchronous_standby_names = ''");
  await run(pair.primary.url, 'select pg_reload_conf()');
  await until(pair.primary.url, "select 1 where current_setting('synchronous_standby_names') = ''");
  assert.deepEqual(await store.commit(creation(token('d'))), {});
  const ids = await run(pair.urlOf(database, [pair.standby]), 'select token_id from tokens');
  const old = await run(pair.urlOf(database, [pair.primary]), 'select token_id from tokens');
  assert.ok(ids.length > old.length, 'what was acknowledged is on the promoted server');
  await assert.rejects(open(t, pair.urlOf(database, both)), {
    name: 'DatabaseServerError',
    message:
      /all accept writes: .* \(timeline 1\), .* \(timeline 2\)\. Stop the one with the lower/,
  });
});

test('a commit whose wait for the standby was cancelled is not acknowledged', async (t) => {
  const pair = await startPair(t);
  const url = pair.urlOf(await pair.createDatabase(), [pair.primary]);
  const store = await open(t, url);
  await store.commit(creation(token('a')));
  await pair.standby.kill();
  const commit = assert.rejects(store.commit(creation(token('b'))), {
    code: 'unavailable',
    public: /does not know whether/,
  });
  const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
  await until(url, waiting);
  await run(url, `select pg_cancel_backend(pid) from (${waiting}) waiting`);
  await commit;
});
