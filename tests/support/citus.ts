/**
 * `npm run test:citus`: the contract of the store, storage quotas, the laws and the fault tests on a Citus
 * cluster, of the PostgreSQL with that extension which `TEST_CITUS_BIN` or `pg_config` on the path leads to.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { citusVariable } from './citus-cluster.ts';
import { binariesVariable } from './postgres-installation.ts';

/** The `bin` directory of a PostgreSQL that has the extension. */
const variable = 'TEST_CITUS_BIN';
const files = [
  'tests/store/contract.test.ts',
  'tests/http/storage-quotas.test.ts',
  'tests/laws',
  'tests/faults',
];
const how = 'docs/growth.md says how to build Citus';

const named = process.env[variable];
const binaries = named === undefined ? onPath() : resolve(named);
if (binaries !== undefined && hasCitus(binaries)) {
  process.exitCode = await runTests(binaries, process.argv.slice(2));
} else if (named !== undefined) {
  process.stderr.write(
    `${variable} names a PostgreSQL without the extension citus: ${named}; ${how}.\n`,
  );
  process.exitCode = 1;
} else {
  process.stdout.write(
    `The tests on Citus did not run: no PostgreSQL with it was found. ${how}; then name the directory of its ` +
      `programs in ${variable}.\n`,
  );
}

function onPath(): string | undefined {
  return pathFrom('pg_config', '--bindir');
}

/** By its control file, where `create extension` looks for it. */
function hasCitus(directory: string): boolean {
  const share = pathFrom(join(directory, 'pg_config'), '--sharedir');
  return share !== undefined && existsSync(join(share, 'extension', 'citus.control'));
}

function pathFrom(program: string, flag: string): string | undefined {
  const { status, stdout } = spawnSync(program, [flag], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

async function runTests(directory: string, given: readonly string[]): Promise<number> {
  const version = spawnSync(join(directory, 'postgres'), ['--version'], { encoding: 'utf8' });
  process.stdout.write(`Running on Citus with ${version.stdout.trim()}.\n`);
  const runner = join(import.meta.dirname, 'run.ts');
  const environment = {
    [binariesVariable]: directory,
    [citusVariable]: 'on',
    TEST_ENGINE: 'postgres',
  };
  const child = spawn(process.execPath, [runner, ...(given.length > 0 ? given : files)], {
    env: { ...process.env, ...environment },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  return typeof code === 'number' ? code : 1;
}
