/** A real PostgreSQL for tests and benchmarks, of a development dependency unless another one is named. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  citusSettings,
  execute,
  isCitus,
  joinDatabases,
  workersVariable,
} from './citus-cluster.ts';
import { account, installationFor } from './postgres-installation.ts';
import { childrenOf, isRunning, killIfAlive } from './running.ts';
import { freePort, type Lender } from './temporary.ts';

export interface PostgresOptions {
  /** Server settings such as `{ fsync: 'off' }`, given on the command line. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Keeps the data here, and after {@link Postgres.stop}; the default is removed then. */
  readonly directory?: string;
  /** Of a coordinator, on Citus. */
  readonly workers?: number;
}

/** What a test may do with a cluster that other tests use at the same time. */
export interface SharedPostgres {
  /** Of the maintenance database, as the superuser. */
  readonly url: string;
  /** The URLs of the workers, where it is the coordinator of a Citus cluster. */
  readonly workers: readonly string[];
  /**
   * A fresh database, C collation, and its URL: an empty one, or a copy of the database that is named. When a test is
   * given, it is dropped before the next one that is made after it, when what the test started has stopped.
   */
  createDatabase(t?: Lender, template?: string): Promise<string>;
}

/** A cluster of one's own, which may be killed. */
export interface Postgres extends SharedPostgres {
  readonly directory: string;
  /** Of the postmaster; the last one while the cluster is down. */
  readonly pid: number;
  /** Of this postmaster and those of its workers. */
  readonly pids: readonly number[];
  /** Of its workers, each of which may be killed as well. */
  readonly workerServers: readonly Postgres[];
  /** Ends it and removes the data; where the directory is the caller's, cleanly, and the data stays. */
  stop(): Promise<void>;
  /** SIGKILL to every process at once. Data and port are kept. */
  kill(): Promise<void>;
  /** Comes back on the same data and port, whether it was running or had been killed. */
  restart(): Promise<void>;
}

/** Set by `tests/support/run.ts`, which starts one cluster for all files of a run. */
export const sharedUrlVariable = 'TEST_POSTGRES_URL';

const user = 'strongroom';
const emptyTemplate = 'template0';

const pollMs = 10;
const pollsMax = 3_000;

/**
 * PostgreSQL ends a fast shutdown by itself, however many clients are connected, and an immediate one
 * sooner: it writes nothing down, which after all the databases of a run may take a disk minutes.
 */
const stopMsMax = 30_000;

let shared: Promise<SharedPostgres> | undefined;

/** The cluster of the run, or of this process when its file is run by hand. It needs no stopping. */
export function sharedPostgres(): Promise<SharedPostgres> {
  const url = process.env[sharedUrlVariable];
  const workers = process.env[workersVariable]?.split(',') ?? [];
  shared ??= url === undefined ? startPostgres() : Promise.resolve(cluster(url, workers));
  return shared;
}

/** Starts a cluster that accepts connections. It never outlives this process, nor does its data. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  if (!isCitus()) return startServer(options, []);
  const settings = { ...citusSettings, ...options.settings };
  // Data that was copied from a coordinator names the workers of that one.
  const isCopy = options.directory !== undefined;
  const worker = () => startServer({ settings }, []);
  const count = isCopy ? 0 : (options.workers ?? 2);
  const workers = await Promise.all(Array.from({ length: count }, worker));
  return startServer({ ...options, settings }, workers);
}

async function startServer(
  options: PostgresOptions,
  workers: readonly Postgres[],
): Promise<Postgres> {
  const own = options.directory === undefined;
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'strongroom-postgres-'));
  const scratch = own ? directory : undefined;
  const native = installationFor(directory);
  const data = join(directory, 'data');
  if (!existsSync(join(data, 'PG_VERSION'))) initialise(native, directory, data);

  const port = await freePort();
  const url = `postgres://${user}@127.0.0.1:${port}/postgres`;
  const boot = () =>
    spawnServer({ native, directory, data, port, settings: options.settings ?? {} });
  let server = boot();
  if (scratch !== undefined) process.once('exit', () => remove(scratch));

  const up = async () => {
    guard(server, scratch);
    await ready(server, url, directory);
  };
  const halt = async (end: (server: ChildProcess) => void) => {
    if (hasExited(server)) return;
    const exited = once(server, 'exit', { signal: AbortSignal.timeout(stopMsMax) });
    server.ref();
    end(server);
    await exited;
  };
  const kill = async () => {
    if (hasExited(server)) return;
    const children = freeze(server);
    await halt(() => [pidOf(server), ...children].map((pid) => killIfAlive(pid)));
    // What still ends holds the shared memory, with which no other server starts on the data.
    while (children.some(isRunning)) await pause(pollMs);
  };
  await up();

  return {
    ...cluster(
      url,
      workers.map((worker) => worker.url),
    ),
    directory,
    workerServers: workers,
    get pid() {
      return pidOf(server);
    },
    get pids() {
      return [pidOf(server), ...workers.map(({ pid }) => pid)];
    },
    async stop() {
      // Nothing is left of what it does not write down, so a busy machine may as well end it.
      if (scratch === undefined) await halt((running) => running.kill('SIGINT'));
      else await halt((running) => running.kill('SIGQUIT')).catch(kill);
      await Promise.all(workers.map((worker) => worker.stop()));
      if (scratch !== undefined) remove(scratch);
    },
    kill,
    async restart() {
      await halt((running) => running.kill('SIGINT'));
      server = boot();
      await up();
    },
  };
}

function cluster(url: string, workers: readonly string[]): SharedPostgres {
  const all = [url, ...workers];
  const over: string[] = [];
  return {
    url,
    workers,
    async createDatabase(t, template = emptyTemplate) {
      for (const name of over.splice(0)) {
        for (const one of all) await execute(one, `drop database if exists ${name} with (force)`);
      }
      const name = `test_${randomBytes(8).toString('hex')}`;
      // Of three servers it is a thousand files, which a busy disk has no time for by way of a write-ahead log.
      const strategy = isCitus() ? ' strategy file_copy' : '';
      const create = `create database ${name} template ${template}${strategy}`;
      await Promise.all(all.map((one) => execute(one, create)));
      t?.after(() => void over.push(name));
      const [own = '', ...others] = all.map(
        (one) => Object.assign(new URL(one), { pathname: name }).href,
      );
      // The copy of a database that was joined is joined to the copies of the others.
      if (others.length > 0 && template === emptyTemplate) await joinDatabases(own, others);
      return own;
    },
  };
}

/** Trust is safe here: the cluster listens on loopback alone, holds test data and has no socket file. */
function initialise(native: string, directory: string, data: string): void {
  const done = spawnSync(
    join(native, 'bin', 'initdb'),
    ['-D', data, '-U', user, '--auth=trust', '--locale=C', '--encoding=UTF8', '--no-sync'],
    { ...account, cwd: directory, encoding: 'utf8', env: { LC_ALL: 'C' } },
  );
  if (done.status === 0) return;
  throw new Error(`initdb failed: ${done.error?.message ?? done.stderr}`);
}

interface ServerOptions {
  readonly native: string;
  readonly directory: string;
  readonly data: string;
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
}

function spawnServer({ native, directory, data, port, settings }: ServerOptions): ChildProcess {
  const all = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    ...settings,
  };
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = openSync(logFile(directory), 'a');
  // Detached, so that a Ctrl-C in the terminal reaches the tests first and the cluster after them.
  const server = spawn(join(native, 'bin', 'postgres'), ['-D', data, ...flags], {
    ...account,
    cwd: directory,
    env: { LC_ALL: 'C' },
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  server.unref();
  return server;
}

/**
 * Ends the cluster when this process ends, however that happens: the guard reads a pipe whose only
 * writer is this process. SIGQUIT first, because a postmaster that is killed leaves a shared memory
 * segment behind.
 */
const guardScript = `
  cat > /dev/null
  kill -QUIT "$1"
  n=0
  while [ $n -lt 50 ] && kill -0 "$1" && [ "$(cut -d' ' -f3 /proc/$1/stat)" != Z ]; do
    n=$((n + 1)); sleep 0.1
  done
  kill -KILL "$1"
  [ -z "$2" ] || rm -rf "$2"`;

function guard(server: ChildProcess, scratch: string | undefined): void {
  const watcher = spawn('/bin/sh', ['-c', guardScript, 'sh', `${pidOf(server)}`, scratch ?? ''], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  (watcher.stdin as Socket).unref();
  server.once('exit', () => watcher.kill('SIGKILL'));
}

async function ready(server: ChildProcess, url: string, directory: string): Promise<void> {
  for (let poll = 0; poll < pollsMax && !hasExited(server); poll += 1) {
    const answer = await execute(url, 'select 1').then(
      () => true,
      () => false,
    );
    if (answer) return;
    await pause(pollMs);
  }
  throw new Error(`PostgreSQL did not start:\n${readFileSync(logFile(directory), 'utf8')}`);
}

/**
 * Stops the postmaster and gives its children. It can fork no other then, nor see one of them die and
 * begin an orderly recovery.
 */
function freeze(server: ChildProcess): readonly number[] {
  const pid = pidOf(server);
  process.kill(pid, 'SIGSTOP');
  return childrenOf(pid);
}

function pidOf(server: ChildProcess): number {
  if (server.pid === undefined) throw new Error('PostgreSQL could not be spawned');
  return server.pid;
}

function hasExited(server: ChildProcess): boolean {
  return server.exitCode !== null || server.signalCode !== null;
}

function logFile(directory: string): string {
  return join(directory, 'server.log');
}

function remove(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
}
