/**
 * `npm run test:citus`: tests on a Citus cluster, of the PostgreSQL with that extension which `TEST_CITUS_BIN` or
 * `pg_config` on the path leads to. Without arguments the part that continuous integration runs; `all` is everything
 * that has to do with a database, and what fails there runs again alone; other arguments are the beginnings of paths.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync, statfsSync } from 'node:fs';
import { freemem } from 'node:os';
import { join, resolve } from 'node:path';
import { citusVariable, execute } from './citus-cluster.ts';
import { startPostgres } from './postgres.ts';
import { binariesVariable } from './postgres-installation.ts';
import { againVariable } from './results.ts';

/** The `bin` directory of a PostgreSQL that has the extension. */
const variable = 'TEST_CITUS_BIN';
/** Where the directory was found and not chosen: a PostgreSQL that does not load the extension is no failure. */
const whereItLoads = '--where-it-loads';
const how = 'CONTRIBUTING.md says how to install Citus';

/** What a change can break on Citus without anyone noticing elsewhere, in less than five minutes on two cores. */
const part = [
  'tests/store/contract.test.ts',
  'tests/store/citus-start.test.ts',
  'tests/store/citus-workers.test.ts',
  'tests/store/distribution.test.ts',
  'tests/store/postgres-distribution.test.ts',
  'tests/store/rolling-upgrade.test.ts',
  'tests/http/storage-quotas.test.ts',
  'tests/laws/aged-keys.test.ts',
  'tests/laws/many-tenants.test.ts',
  'tests/laws/nonces.test.ts',
];
/** What lies below and beside these knows of no database, and of these what imports none of `opening`. */
const rooms = [
  'tests/store',
  'tests/access',
  'tests/audit',
  'tests/cli',
  'tests/faults',
  'tests/http',
  'tests/keys',
  'tests/laws',
  'tests/monitoring.test.ts',
  'tests/proxies',
  'tests/queue',
  'tests/reactors',
  'tests/runtime',
  'tests/tokens',
  'tests/webhooks',
];
const opening = /support\/(?:engines|postgres|migrated|copy-places)\.ts'/;
const memory = '/dev/shm';
const memoryBytesMin = 8 * 2 ** 30;
const root = join(import.meta.dirname, '..', '..');

const [first, ...others] = process.argv.slice(2).filter((argument) => argument !== whereItLoads);
const isFound = process.argv.includes(whereItLoads);
const named = process.env[variable];
const binaries = named === undefined ? onPath() : resolve(named);
const missing = binaries === undefined ? 'no PostgreSQL was found' : await whyNot(binaries);
if (binaries !== undefined && missing === undefined) {
  process.exitCode = await runTests(binaries);
} else if (named !== undefined && !isFound) {
  process.stderr.write(`The tests on Citus cannot run: of ${variable}, ${missing}. ${how}.\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`The tests on Citus did not run: ${missing}. ${how}.\n`);
}

function onPath(): string | undefined {
  return pathFrom('pg_config', '--bindir');
}

/** @returns why no test can run with these programs, in one line; `undefined` where the tests can run. */
async function whyNot(directory: string): Promise<string | undefined> {
  const name = versionOf(directory);
  if (name === undefined) return `${directory} has no PostgreSQL`;
  // By its control file, where `create extension` looks for it.
  const share = pathFrom(join(directory, 'pg_config'), '--sharedir');
  if (share === undefined || !existsSync(join(share, 'extension', 'citus.control'))) {
    return `the ${name} in ${directory} is without the extension citus`;
  }
  try {
    await load(directory);
    return undefined;
  } catch (error) {
    // A library that was built for another release is found, and only a server says that it does not load.
    const lines = (error instanceof Error ? error.message : '').split('\n');
    const said = lines.find((line) => line.includes('FATAL:')) ?? lines[0] ?? '';
    return `the ${name} in ${directory} does not load the extension citus: ${said.trim()}`;
  }
}

/** Starts one server with the library, and nothing of the vault: what the vault does wrong is a failure of a test. */
async function load(directory: string): Promise<void> {
  process.env[binariesVariable] = directory;
  const server = await startPostgres({ settings: { shared_preload_libraries: 'citus' } });
  try {
    await execute(server.url, 'create extension citus');
  } finally {
    await server.stop();
  }
}

function versionOf(directory: string): string | undefined {
  const { status, stdout } = spawnSync(join(directory, 'postgres'), ['--version'], {
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim().replace(/^postgres \(PostgreSQL\)/, 'PostgreSQL') : undefined;
}

function pathFrom(program: string, flag: string): string | undefined {
  const { status, stdout } = spawnSync(program, [flag], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function chosen(): readonly string[] {
  if (first === undefined) return part;
  return first === 'all' ? [...all(), ...others] : [first, ...others];
}

function all(): readonly string[] {
  return globSync('tests/**/*.test.ts', { cwd: root }).filter(
    (file) =>
      rooms.some((room) => file.startsWith(room)) &&
      opening.test(readFileSync(join(root, file), 'utf8')),
  );
}

/** Making and removing the thousand files of each database takes a disk three times as long, and more under load. */
function isRoomInMemory(): boolean {
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return false;
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize > memoryBytesMin && freemem() > memoryBytesMin;
}

async function runTests(directory: string): Promise<number> {
  process.stdout.write(`Running on Citus with ${versionOf(directory)}.\n`);
  const runner = join(import.meta.dirname, 'run.ts');
  const environment = {
    [binariesVariable]: directory,
    [citusVariable]: 'on',
    TEST_ENGINE: 'postgres',
    ...(isRoomInMemory() && { TMPDIR: memory }),
    ...(first === 'all' && { [againVariable]: 'on' }),
  };
  const child = spawn(process.execPath, [runner, ...chosen()], {
    env: { ...process.env, ...environment },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  return typeof code === 'number' ? code : 1;
}
