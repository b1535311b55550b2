/** Runs the tests: all of them, or those whose path begins with one of the arguments. */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { bundlePackages } from './bundle-packages.ts';
import { isCitus, workersVariable } from './citus-cluster.ts';
import { drawVariable, engineVariable } from './engines.ts';
import { makeTemplateDatabase, makeTemplateFile, templateVariables } from './migrated.ts';
import { packProgram } from './packed-program.ts';
import { sharedUrlVariable, startPostgres } from './postgres.ts';
import { type Environment, programVariable } from './process.ts';

/** Of two cores a file uses two thirds of one: the rest of the time it waits for a disk or a child process. */
const filesAtOnce = 3;
/** Of a test: several times what the longest takes where much else runs. A test that hangs fails by it. */
const testMsMax = 5 * 60_000;
/** Without a line of output: a file that does not end is ended by it, and named. */
const silentMsMax = 2 * testMsMax;

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
  'tests/audit/refusals.test.ts',
];

const files = globSync('tests/**/*.test.ts', { cwd: root }).filter(isWanted).sort();
if (files.length === 0) throw new Error(`no test file matches ${filters.join(' ')}`);

const program = await packProgram();
const packages = await bundlePackages(join(cache, 'strongroom-test-packages'));
// No test takes the machine away from it; those that kill a cluster have one of their own.
const postgres = await startPostgres({ settings: { fsync: 'off' } });
const templates = {
  [templateVariables.file]: await makeTemplateFile(),
  ...(!isCitus() && { [templateVariables.database]: await makeTemplateDatabase(postgres) }),
};
const isWhole = filters.length === 0 && process.env['TEST_THREADS'] === undefined;
// Named files are run on both engines: a developer who works at them sees all of it.
const seed = process.env['TEST_SEED'] ?? `${randomInt(2 ** 31)}`;
const isDrawn = filters.length === 0 && process.env[engineVariable] === undefined;
const draw: Environment = isDrawn ? { TEST_SEED: seed, [drawVariable]: seed } : {};
let last = '';
if (isDrawn)
  print(
    `TEST_SEED=${seed} draws the engine of each file in tests/http, jobs and vault, and whose calls run on both.`,
  );
const running = [runTests({ paths: files, atOnce: filesAtOnce, more: {}, print })];
if (isWhole) running.push(runOnTwoThreads());
const [own, other] = await Promise.all(running);
// The summary ends the output, also where the reporter itself would end with the list of what failed.
if (last !== own?.summary.at(-1)) for (const line of own?.summary ?? []) print(line);
process.exitCode = own?.code || (other?.code ?? 0);
await postgres.stop();

function isWanted(file: string): boolean {
  return filters.length === 0 || filters.some((filter) => file.startsWith(pathFrom(filter)));
}

function pathFrom(filter: string): string {
  return filter.replace(/^\.\//, '');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
  if (line.trim() !== '') last = line;
}

/** Beside all others, one file at a time; what it prints comes in one piece. */
async function runOnTwoThreads(): Promise<Ended> {
  const lines: string[] = [];
  const ended = await runTests({
    paths: onTwoThreads,
    atOnce: 1,
    more: { TEST_THREADS: '2', TEST_ENGINE: 'sqlite' },
    print: (line) => lines.push(line),
  });
  for (const line of ['On two threads:', ...lines]) print(line);
  return ended;
}

interface TestRun {
  readonly paths: readonly string[];
  readonly atOnce: number;
  readonly more: Environment;
  readonly print: (line: string) => void;
}

interface Ended {
  readonly code: number;
  readonly summary: readonly string[];
}

async function runTests({ paths, atOnce, more, print }: TestRun): Promise<Ended> {
  const runner = spawn(
    process.execPath,
    [
      ...['--test', '--test-reporter=spec', `--test-concurrency=${atOnce}`],
      ...[`--test-timeout=${testMsMax}`, `--import=${preload}`, ...flags, ...paths],
    ],
    {
      cwd: root,
      env: {
        ...colours(),
        ...compiled,
        ...process.env,
        ...packages,
        ...templates,
        ...draw,
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
  // It says then which files were running.
  const silence = setTimeout(() => runner.kill('SIGTERM'), silentMsMax);

  const summary: string[] = [];
  for await (const line of createInterface({ input: runner.stdout })) {
    silence.refresh();
    print(line);
    if (/^\S*ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(line)) {
      summary.push(line);
    }
  }
  const [code] = await exited;
  clearTimeout(silence);
  return { code: typeof code === 'number' ? code : 1, summary };
}

function colours(): { FORCE_COLOR?: string } {
  return process.stdout.isTTY ? { FORCE_COLOR: '1' } : {};
}
