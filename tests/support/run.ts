/** Runs the tests: all of them, or those whose path begins with one of the arguments. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { bundlePackages } from './bundle-packages.ts';
import { workersVariable } from './citus-cluster.ts';
import { packProgram } from './packed-program.ts';
import { sharedUrlVariable, startPostgres } from './postgres.ts';
import { type Environment, programVariable } from './process.ts';

/** Two cores: a file that waits for a disk or a child process leaves its core to the other. */
const filesAtOnce = 2;

const root = join(import.meta.dirname, '..', '..');
const cache = join(root, 'node_modules', '.cache');
/** Every thread of every file loads the same code. */
const compiled = { NODE_COMPILE_CACHE: join(cache, 'strongroom') };
const preload = pathToFileURL(join(import.meta.dirname, 'preload-packages.ts')).href;
const flags = process.argv.slice(2).filter((argument) => argument.startsWith('-'));
const filters = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));

/**
 * What requests on several threads could break; run so as well, when everything is run, on the embedded
 * engine. On PostgreSQL threads are to each other as servers are, which tests of their own cover.
 */
const onTwoThreads = [
  'tests/faults/kill.test.ts',
  'tests/faults/replay.test.ts',
  'tests/http/hostile-expressions.test.ts',
  'tests/http/idempotency.test.ts',
  'tests/http/rate-limit.test.ts',
  'tests/http/slow-clients.test.ts',
  'tests/laws/isolation.test.ts',
  'tests/laws/nonces.test.ts',
  'tests/laws/revocation.test.ts',
  'tests/laws/stop.test.ts',
  'tests/vault/refusals.test.ts',
];

const files = globSync('tests/**/*.test.ts', { cwd: root }).filter(isWanted).sort();
if (files.length === 0) throw new Error(`no test file matches ${filters.join(' ')}`);

const program = await packProgram();
const packages = await bundlePackages(join(cache, 'strongroom-test-packages'));
// No test takes the machine away from it; those that kill a cluster have one of their own.
const postgres = await startPostgres({ settings: { fsync: 'off' } });
const isWhole = filters.length === 0 && process.env['TEST_THREADS'] === undefined;
const twoThreads = { TEST_THREADS: '2', TEST_ENGINE: 'sqlite' };
const codeOnTwo = isWhole ? await runTests(onTwoThreads, twoThreads) : 0;
// Last, so that its summary ends the output.
process.exitCode = (await runTests(files, {})) || codeOnTwo;
await postgres.stop();

function isWanted(file: string): boolean {
  return filters.length === 0 || filters.some((filter) => file.startsWith(pathFrom(filter)));
}

function pathFrom(filter: string): string {
  return filter.replace(/^\.\//, '');
}

/**
 * The runner's summary comes last, also after a failure, when the reporter itself would end with
 * the list of what failed.
 */
async function runTests(paths: readonly string[], more: Environment): Promise<number> {
  const runner = spawn(
    process.execPath,
    [
      ...['--test', '--test-reporter=spec', `--test-concurrency=${filesAtOnce}`],
      ...[`--import=${preload}`, ...flags, ...paths],
    ],
    {
      cwd: root,
      env: {
        ...colours(),
        ...compiled,
        ...process.env,
        ...packages,
        [sharedUrlVariable]: postgres.url,
        ...(postgres.workers.length > 0 && { [workersVariable]: postgres.workers.join(',') }),
        [programVariable]: program,
        ...more,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => runner.kill(signal));
  const exited = once(runner, 'exit');

  const summary: string[] = [];
  let last = '';
  for await (const line of createInterface({ input: runner.stdout })) {
    process.stdout.write(`${line}\n`);
    if (/^\S*ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(line)) {
      summary.push(line);
    }
    if (line.trim() !== '') last = line;
  }
  if (summary.length > 0 && last !== summary.at(-1))
    process.stdout.write(`${summary.join('\n')}\n`);

  const [code] = await exited;
  return typeof code === 'number' ? code : 1;
}

function colours(): { FORCE_COLOR?: string } {
  return process.stdout.isTTY ? { FORCE_COLOR: '1' } : {};
}
