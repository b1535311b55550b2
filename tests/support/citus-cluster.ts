/** What makes PostgreSQL servers a Citus cluster: a coordinator, two workers, and databases that all three have. */
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import pg from 'pg';
import { openStore } from '../../src/store/open/open.ts';

/** `on` for a run on Citus, whose binaries `TEST_POSTGRES_BIN` names then. Set by `tests/support/citus.ts`. */
export const citusVariable = 'TEST_CITUS';
/** The workers of the cluster of the run, by their URLs. */
export const workersVariable = 'TEST_CITUS_WORKERS';

export const isCitus = (): boolean => process.env[citusVariable] === 'on';

/**
 * For the option `skip` of a test whose set-up only PostgreSQL has.
 * @param why the test does not apply, as the run says it.
 */
export const notOnCitus = (why: string): string | false =>
  isCitus() && `does not apply on Citus: ${why}`;

/** Few shards, because every test has a database of its own. */
export const citusSettings = {
  shared_preload_libraries: 'citus',
  'citus.shard_count': '4',
  'citus.node_conninfo': 'sslmode=prefer',
};

/** Makes one database of three, and distributes the tables of a vault in it, as a first start does. */
export async function joinDatabases(
  coordinator: string,
  workers: readonly string[],
): Promise<void> {
  for (const url of [coordinator, ...workers]) await execute(url, 'create extension citus');
  const addressOf = (url: string) => `'127.0.0.1', ${new URL(url).port}`;
  await execute(coordinator, `select citus_set_coordinator_host(${addressOf(coordinator)})`);
  for (const worker of workers) {
    await addNode(coordinator, addressOf(worker));
  }
  const store = await openStore({
    databaseUrl: coordinator,
    isDistributed: true,
    dataDir: tmpdir(),
    newStreamId: randomUUID,
  });
  await store.close();
}

const attemptsMax = 5;

/** Citus sometimes loses the connection over which it tells a new node of the others, and then adds none. */
async function addNode(coordinator: string, address: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await execute(coordinator, `select citus_add_node(${address})`);
      return;
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code !== 'XX000' || attempt === attemptsMax) throw error;
    }
  }
}

export async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
