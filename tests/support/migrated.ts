/** Empty vaults for tests to begin with: the tables are made once in a run, and copied for each test. */
import { randomUUID } from 'node:crypto';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../src/store/open/open.ts';
import { databaseFile } from '../../src/store/sqlite/database.ts';
import { execute, isCitus } from './citus-cluster.ts';
import { type SharedPostgres, sharedPostgres } from './postgres.ts';
import type { Lender } from './temporary.ts';

/** Where the runner put what is copied, so that not every test file makes its own. */
export const templateVariables = {
  /** A name in the cluster of the run. */
  database: 'TEST_TEMPLATE_DATABASE',
  /** The path of a file of the embedded engine. */
  file: 'TEST_TEMPLATE_FILE',
};

let database: Promise<string> | undefined;
let file: Promise<string> | undefined;

/** @returns the URL of a database of the shared cluster that has the tables and no row of a vault. */
export async function createMigratedDatabase(t?: Lender): Promise<string> {
  const postgres = await sharedPostgres();
  const named = process.env[templateVariables.database];
  database ??= named === undefined ? makeTemplateDatabase(postgres) : Promise.resolve(named);
  return postgres.createDatabase(t, await database);
}

/** Puts the database file of an empty vault of the embedded engine into a directory. */
export async function copyMigratedFile(dataDir: string): Promise<void> {
  const named = process.env[templateVariables.file];
  file ??= named === undefined ? makeTemplateFile() : Promise.resolve(named);
  copyFileSync(await file, databaseFile(dataDir));
}

/** @returns its name. It takes no connections, because a database that has one cannot be copied. */
export async function makeTemplateDatabase(postgres: SharedPostgres): Promise<string> {
  const databaseUrl = await postgres.createDatabase();
  // On Citus a fresh database has the tables.
  if (!isCitus()) await migrate(databaseUrl);
  const name = new URL(databaseUrl).pathname.slice(1);
  for (const url of [postgres.url, ...postgres.workers]) {
    await execute(url, `alter database ${name} with allow_connections false`);
    // A pooler between the cluster and the tests may keep one open, and so does Citus.
    await execute(
      url,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
    );
  }
  return name;
}

/** @returns its path, in a directory that is removed when this process ends. */
export async function makeTemplateFile(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'strongroom-template-'));
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }));
  await migrate(undefined, dataDir);
  const path = databaseFile(dataDir);
  if (existsSync(`${path}-wal`)) throw new Error('the tables are in the log that is not copied');
  return path;
}

async function migrate(databaseUrl: string | undefined, dataDir = tmpdir()): Promise<void> {
  const store = await openStore({ databaseUrl, dataDir, newStreamId: randomUUID });
  await store.close();
}
