/** A primary and its synchronous standby, as operators run them: what is acknowledged is on both. */
import pg from 'pg';
import { copyData } from './base-backup.ts';
import { untilSo } from './poll.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

export interface Pair {
  readonly primary: Postgres;
  readonly standby: Postgres;
  /** The name of a fresh database that both have. */
  createDatabase(): Promise<string>;
  /** Of a database on either, or on both as a vault is given them. */
  urlOf(database: string, servers: readonly Postgres[]): string;
  /** Ends the recovery of the standby, which takes writes from then on. */
  promote(): Promise<void>;
}

const name = 'standby';

/** Both end with the test. */
export async function startPair(t: Lender): Promise<Pair> {
  const primary = await startPostgres({ settings: { wal_keep_size: '256MB' } });
  t.after(() => primary.stop());
  const directory = temporaryDirectory(t);
  await copyData(primary, directory, ['standby.signal']);
  const { hostname, port, username } = new URL(primary.url);
  const standby = await startPostgres({
    directory,
    settings: {
      primary_conninfo: `host=${hostname} port=${port} user=${username} application_name=${name}`,
      recovery_target_timeline: 'latest',
    },
  });
  t.after(() => standby.stop());
  await run(primary.url, `alter system set synchronous_standby_names = '${name}'`);
  await run(primary.url, 'select pg_reload_conf()');
  await until(primary.url, `select 1 from pg_stat_replication where sync_state = 'sync'`);
  return {
    primary,
    standby,
    createDatabase: async () => {
      const database = new URL(await primary.createDatabase()).pathname.slice(1);
      await until(standby.url, `select 1 from pg_database where datname = '${database}'`);
      return database;
    },
    urlOf: (database, servers) => {
      const hosts = servers.map(({ url }) => new URL(url).host).join(',');
      return `postgres://${username}@${hosts}/${database}?target_session_attrs=read-write`;
    },
    promote: async () => void (await run(standby.url, 'select pg_promote()')),
  };
}

export async function run(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Until the query has a row. */
export async function until(url: string, sql: string): Promise<void> {
  await untilSo(
    async () => (await run(url, sql)).length > 0,
    () => `there was no row of: ${sql}`,
  );
}
