/** Runs the tests: all of them, or those whose path begins with one of the arguments. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { findIsolation } from '../../src/reactors/sandbox/probe.ts';
import { bundlePackages } from './bundle-packages.ts';
import { workersVariable } from './citus-cluster.ts';
import { engineVariable } from './engines.ts';
import { isolationVariable } from './isolation.ts';
import { makeTemplateDatabase, makeTemplateFile, templateVariables } from './migrated.ts';
import { packProgram } from './packed-program.ts';
import { sharedUrlVariable, startPostgres } from './postgres.ts';
import { type Environment, environmentOf, programVariable, spawnVault } from './process.ts';
import { pythonVariable } from './python.ts';
import { pythonEnvironment } from './python-environment.ts';
import { drawVariable } from './random.ts';
import {
  againVariable,
  failedFiles,
  finalOf,
  linesOf,
  type RunResult,
  summaryOf,
} from './results.ts';
import { collectTimes } from './times.ts';

/** Of two cores a file uses half of one: the rest of the time it waits for a disk, a child process or a clock. */
const filesAtOnce = Number(process.env['TEST_AT_ONCE'] ?? 4);
/** Of a test: several times what the longest takes where much else runs. A test that hangs fails by it. */
const testMsMax = 5 * 60_000;
/** Without a line of output: a file that does not end is ended by it, and named. */
const silentMsMax = 2 * testMsMax;
/** Run again after a whole run. Where more files fail, the reason is not the machine. */
const filesAgainMax = 20;

const root = join(import.meta.dirname, '..', '..');
const cache = join(root, 'node_modules', '.cache');
/** Every thread of every file loads the same code. */
const compiled = { NODE_COMPILE_CACHE: join(cache, 'strongroom') };
/** What `preload-packages.ts` loads in place of what is named or started. */
const modulesVariable = 'TEST_MODULES';
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
  'tests/laws/altered-rotations.test.ts',
  'tests/laws/isolation.test.ts',
  'tests/laws/nonces.test.ts',
  'tests/laws/revocation.test.ts',
  'tests/laws/stop.test.ts',
  'tests/audit/refusals.test.ts',
];

/** Beside all others, one file at a time. */
const onTwoThreadsBeside = {
  paths: onTwoThreads,
  atOnce: 1,
  more: { TEST_THREADS: '2', TEST_ENGINE: 'sqlite' },
  label: ' on two threads',
};

interface TestRun {
  readonly paths: readonly string[];
  readonly atOnce: number;
  readonly more: Environment;
  /** Behind the names of its files. */
  readonly label: string;
}

interface Ended {
  readonly run: TestRun;
  readonly first: RunResult;
  again?: RunResult;
}

/** By the clock; they begin first, so that no core is idle while the last one runs. See `TEST_TIMES`. */
const longest: readonly string[] = [
  'tests/reactors/pool.test.ts',
  'tests/laws/derived-authority.test.ts',
  'tests/runtime/import.test.ts',
  'tests/packaging/npm-processes.test.ts',
  'tests/packaging/guides.test.ts',
  'tests/faults/webhook-kills.test.ts',
  'tests/faults/reactor-kills.test.ts',
  'tests/faults/isolation-kept.test.ts',
  'tests/laws/isolation.test.ts',
  'tests/runtime/threads.test.ts',
  'tests/faults/database-trouble.test.ts',
  'tests/laws/room-to-read-and-delete.test.ts',
  'tests/laws/explained-database.test.ts',
  'tests/store/second-primary.test.ts',
  'tests/http/reactor-async.test.ts',
  'tests/reactors/hostile-endless.test.ts',
  'tests/store/servers.test.ts',
  'tests/reactors/hostile-floods.test.ts',
  'tests/cli/doctor.test.ts',
  'tests/laws/stop.test.ts',
  'tests/http/reactor-call.test.ts',
  'tests/laws/reactor-runs-written-back.test.ts',
  'tests/store/distribution.test.ts',
  'tests/cli/tenant.test.ts',
  'tests/faults/reactor-runs.test.ts',
  'tests/cli/tenant-hosts.test.ts',
  'tests/http/bulk.test.ts',
  'tests/faults/storage.test.ts',
  'tests/faults/replay.test.ts',
  'tests/packaging/image.test.ts',
  'tests/laws/access-model.test.ts',
  'tests/http/proxy-call-withdrawn.test.ts',
  'tests/cli/logs.test.ts',
  'tests/laws/root-key.test.ts',
  'tests/http/proxy-call-code.test.ts',
  'tests/laws/access-model-react.test.ts',
  'tests/laws/altered-rows.test.ts',
];

const files = inOrder(globSync('tests/**/*.test.ts', { cwd: root }).filter(isWanted));
if (files.length === 0) throw new Error(`no test file matches ${filters.join(' ')}`);

const readyPython = findPython();
const program = await packProgram();
const packages = await bundlePackages(join(cache, 'strongroom-test-packages'));
// No test takes the machine away from it; those that kill a cluster have one of their own.
const postgres = await startPostgres({ settings: { fsync: 'off' } });
await warmUp();
const times = process.env['TEST_TIMES'] === undefined ? undefined : collectTimes();
const templates = {
  [templateVariables.file]: await makeTemplateFile(),
  [templateVariables.database]: await makeTemplateDatabase(postgres),
};
const isolation = (await findIsolation()) ?? null;
const python = await readyPython;
const isWhole = filters.length === 0 && process.env['TEST_THREADS'] === undefined;
// Named files are run on both engines: a developer who works at them sees all of it.
const seed = process.env['TEST_SEED'] ?? `${randomInt(2 ** 31)}`;
const isDrawn = filters.length === 0 && process.env[engineVariable] === undefined;
const draw: Environment = isDrawn ? { TEST_SEED: seed, [drawVariable]: seed } : {};
if (isDrawn)
  print(
    `TEST_SEED=${seed} draws the engine of each file above the store, and whose calls run on both.`,
  );
const runs = [
  { paths: files, atOnce: filesAtOnce, more: {}, label: '' },
  ...(isWhole ? [onTwoThreadsBeside] : []),
];
const ended = await Promise.all(
  runs.map(async (run): Promise<Ended> => ({ run, first: await runTests(run) })),
);
const isAgain = isWhole || process.env[againVariable] === 'on';
if (isAgain && canRunAgain(ended)) await runFailedAgain(ended);
const results = ended.flatMap(finalOf);
for (const line of ended.flatMap(linesOf)) print(line);
for (const line of summaryOf(results, performance.now())) print(line);
for (const line of times?.lines() ?? []) print(line);
const isPassed = ended.every(isComplete) && results.every(({ failed }) => failed.length === 0);
process.exitCode = isPassed ? 0 : 1;
await postgres.stop();

function isWanted(file: string): boolean {
  return filters.length === 0 || filters.some((filter) => file.startsWith(pathFrom(filter)));
}

function inOrder(paths: readonly string[]): readonly string[] {
  const first = longest.filter((path) => paths.includes(path));
  return [...first, ...paths.filter((path) => !longest.includes(path)).sort()];
}

function pathFrom(filter: string): string {
  return filter.replace(/^\.\//, '');
}

/** One with the packages of the tests, where a test wants it and none is named. */
async function findPython(): Promise<string | undefined> {
  const isNeeded = files.some((file) =>
    readFileSync(join(root, file), 'utf8').includes('python.ts'),
  );
  if (!isNeeded || process.env[pythonVariable] !== undefined) return undefined;
  const found = await pythonEnvironment(cache);
  if ('python' in found) return found.python;
  print(`Python's packages could not be installed, so tests that need them skip: ${found.absence}`);
  return undefined;
}

/**
 * Code that was compiled is kept when a process ends by itself, and most vaults of the tests are killed: one ends, so
 * that no other compiles it again, which is a third of a start.
 */
async function warmUp(): Promise<void> {
  const place = {
    dataDir: mkdtempSync(join(tmpdir(), 'strongroom-warm-')),
    databaseUrl: undefined,
  };
  const ends: (() => unknown)[] = [() => rmSync(place.dataDir, { recursive: true })];
  const command = [process.execPath, program.command, 'serve'];
  const lender = { after: (end: () => unknown) => void ends.unshift(end) };
  const vault = await spawnVault(lender, environmentOf(place), command);
  vault.terminate();
  await vault.finished;
  for (const end of ends) await end();
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function isComplete({ first }: Ended): boolean {
  return !first.isInterrupted;
}

function canRunAgain(ended: readonly Ended[]): boolean {
  const failed = ended.flatMap(({ first }) => failedFiles(first));
  return failed.length > 0 && failed.length <= filesAgainMax && ended.every(isComplete);
}

/** What failed because the machine had no time for it passes alone; a defect fails twice. */
async function runFailedAgain(ended: readonly Ended[]): Promise<void> {
  for (const one of ended) {
    const paths = failedFiles(one.first);
    if (paths.length === 0) continue;
    for (const path of paths) print(`⚠ failed, and runs again alone: ${path}${one.run.label}`);
    one.again = await runTests({ ...one.run, paths, atOnce: 1 });
  }
}

async function runTests({ paths, atOnce, more, label }: TestRun): Promise<RunResult> {
  const runner = fork(join(import.meta.dirname, 'run-files.ts'), paths, {
    cwd: root,
    execArgv: flags,
    env: {
      ...colours(),
      ...compiled,
      ...process.env,
      [modulesVariable]: JSON.stringify({ ...packages, ...program.started }),
      ...templates,
      ...times?.environment,
      ...draw,
      TEST_AT_ONCE: `${atOnce}`,
      TEST_MS_MAX: `${testMsMax}`,
      TEST_PRELOAD: preload,
      [isolationVariable]: JSON.stringify(isolation),
      [sharedUrlVariable]: postgres.url,
      ...(python && { [pythonVariable]: python }),
      ...(postgres.workers.length > 0 && { [workersVariable]: postgres.workers.join(',') }),
      [programVariable]: program.command,
      ...more,
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => runner.kill(signal));
  let result: RunResult = { files: [], isInterrupted: true };
  // A message of `run-files.ts`, which sends this and nothing else.
  runner.on('message', (message) => {
    result = message as RunResult;
  });
  const closed = once(runner, 'close');
  // It says then which files were running.
  const silence = setTimeout(() => runner.kill('SIGTERM'), silentMsMax);

  assert.ok(runner.stdout);
  // What runs beside all others comes in one piece.
  const held: string[] = label === '' ? [] : [`Files${label}:`];
  for await (const line of createInterface({ input: runner.stdout })) {
    silence.refresh();
    if (label === '') print(line);
    else held.push(line);
  }
  const [code] = await closed;
  clearTimeout(silence);
  for (const line of held) print(line);
  const isExplained = code === 0 || failedFiles(result).length > 0;
  return isExplained ? result : { ...result, isInterrupted: true };
}

function colours(): { FORCE_COLOR?: string } {
  return process.stdout.isTTY ? { FORCE_COLOR: '1' } : {};
}
