/** The vault as operators run it: a server in a process of its own, which may be killed, and commands. */
import assert from 'node:assert/strict';
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import type { Place } from './engines.ts';
import { untilSo } from './poll.ts';
import { killIfAlive } from './running.ts';
import type { Lender } from './temporary.ts';
import { managementKey, request, threads } from './vault.ts';

export interface Finished {
  /** `null` when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface VaultProcess {
  readonly url: string;
  readonly pid: number;
  /** Everything it has written so far. */
  output(): string;
  /** SIGKILL to the whole process group. */
  kill(): Promise<void>;
  /** SIGTERM. */
  terminate(): void;
  /** Settles when it has ended, however that came. */
  readonly finished: Promise<Finished>;
}

export type Environment = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '..', '..');
/** Where the runner put a package: its command, bundled as it is published, which starts in a third of the time. */
export const programVariable = 'TEST_PROGRAM';

export const main = process.env[programVariable] ?? join(root, 'bin', 'strongroom.js');

/** Compiled code is kept, which halves the time of a start. */
export const compileCache = {
  NODE_COMPILE_CACHE: join(root, 'node_modules', '.cache', 'strongroom'),
};

/** Of its own environment a child gets these. */
const inherited = {
  PATH: process.env['PATH'],
  TMPDIR: process.env['TMPDIR'],
  ...compileCache,
};

const listening = /"msg":"Strongroom listens on ([^"\s]+)"/;

/** A vault that runs code first finds out how the machine keeps it apart, a third of the time of its start. */
export const withCode: Environment = { STRONGROOM_REACTORS: 'on' };

/** The variables under which a vault runs in a place, without code; a later one overrides an earlier one. */
export function environmentOf(place: Place, ...more: readonly Environment[]): Environment {
  return Object.assign(
    {
      STRONGROOM_PORT: '0',
      STRONGROOM_DATA_DIR: place.dataDir,
      ...(place.databaseUrl !== undefined && { STRONGROOM_DATABASE_URL: place.databaseUrl }),
      STRONGROOM_BOOTSTRAP_KEY: managementKey,
      STRONGROOM_THREADS: threads,
      STRONGROOM_REACTORS: 'off',
    },
    ...more,
  );
}

/** Starts `strongroom serve`, or what is given in its place, and waits until it listens. It ends with the test. */
export async function spawnVault(
  t: Lender,
  environment: Environment,
  command?: readonly string[],
): Promise<VaultProcess> {
  const started = start(['serve'], environment, command);
  t.after(started.kill);
  const { child, finished, output } = started;
  const url = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const match = listening.exec(output());
      if (match?.[1] !== undefined) resolve(match[1]);
    };
    child.stdout?.on('data', look);
    void finished.then(({ code }) => {
      look();
      reject(new Error(`strongroom serve ended with ${code} before it listened:\n${output()}`));
    });
  });
  return {
    url,
    pid: child.pid ?? 0,
    output,
    kill: started.kill,
    terminate: () => void child.kill('SIGTERM'),
    finished,
  };
}

/** Waits until the server has written what matches. */
export async function untilOutput(vault: VaultProcess, form: RegExp): Promise<void> {
  await untilSo(
    () => form.test(vault.output()),
    () => `${form} is not in:\n${vault.output()}`,
  );
}

/** Waits until `/readyz` gives this status. */
export async function untilReady(url: string, status: 200 | 503 = 200): Promise<void> {
  await untilSo(
    async () => (await request(`${url}/readyz`, 'GET')).status === status,
    () => `/readyz did not become ${status}`,
  );
}

/**
 * Runs a command that ends by itself, such as `tenant create`, in this process and as the program runs it: the start of
 * a process takes longer than most commands. Those that run a whole server have a process of their own.
 */
export function runCommand(words: readonly string[], environment: Environment): Promise<Finished> {
  return runWithInput(words, environment, '');
}

/** The same with this on its standard input. */
export async function runWithInput(
  words: readonly string[],
  environment: Environment,
  input: string,
): Promise<Finished> {
  if (isServer(words)) return runProcess(words, environment);
  const { runCommand: run } = await import('../../src/cli/commands.ts');
  const [stdout, stderr] = [new CollectedOutput(), new CollectedOutput()];
  const code = await run(words, {
    stdin: new PassThrough().end(input),
    stdout,
    stderr,
    env: { ...inherited, ...environment },
    exit: (early) => assert.fail(`the command ended early, with ${early}`),
  });
  return { code, stdout: stdout.text, stderr: stderr.text };
}

/** What begins threads and writes a log to the descriptors of its process. */
function isServer([first]: readonly string[]): boolean {
  return first === 'serve' || first === 'demo';
}

class CollectedOutput extends Writable {
  readonly #chunks: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
}

/**
 * Runs a command as the program, for tests about the process. A start that is not refused is ended, so that its test
 * fails and does not wait for ever.
 */
export function runProcess(
  words: readonly string[],
  environment: Environment,
  user: Pick<SpawnOptions, 'uid' | 'gid'> = {},
): Promise<Finished> {
  const { child, finished, kill, output } = start(words, environment, undefined, user);
  const look = () => {
    if (listening.test(output())) void kill();
  };
  if (words[0] === 'serve') child.stdout?.on('data', look);
  return finished;
}

/** Begins a command that the test may kill. It ends with the test. */
export function beginCommand(
  t: Lender,
  words: readonly string[],
  environment: Environment,
): Pick<VaultProcess, 'kill' | 'finished'> {
  const { kill, finished } = start(words, environment);
  t.after(kill);
  return { kill, finished };
}

export interface HeldCommand extends Pick<VaultProcess, 'kill' | 'finished'> {
  /** Resolves once it stands still, with its connections and locks; rejects where it ends before. */
  readonly held: Promise<void>;
  goOn(): void;
}

/** Begins a command that stops itself (see `held-command.ts`) and says so, until the test lets it go on. */
export function beginHeldCommand(
  t: Lender,
  words: readonly string[],
  environment: Environment,
): HeldCommand {
  const { child, finished, kill } = start(words, environment);
  t.after(kill);
  const held = new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      if (chunk.includes(heldWord)) resolve();
    });
    void finished.then(({ stderr }) => reject(new Error(`the command was never held: ${stderr}`)));
  });
  return { held, finished, kill, goOn: () => void child.kill('SIGCONT') };
}

/** What a command that stops itself says. */
export const heldWord = 'held by its test';

/** Runs a command and interrupts it, as Ctrl-C does, once it has written what matches. */
export function interruptCommand(
  words: readonly string[],
  environment: Environment,
  when: RegExp,
): Promise<Finished> {
  const { child, finished, output } = start(words, environment);
  const look = () => {
    if (!when.test(output())) return;
    child.stdout?.off('data', look);
    child.kill('SIGINT');
  };
  child.stdout?.on('data', look);
  return finished;
}

function start(
  words: readonly string[],
  environment: Environment,
  [program = '', ...given]: readonly string[] = [process.execPath, main, ...words],
  user: Pick<SpawnOptions, 'uid' | 'gid'> = {},
) {
  const child = spawn(program, given, {
    ...user,
    cwd: root,
    env: { ...inherited, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const finished = once(child, 'close').then(
    ([code]): Finished => ({ code, stdout: stdout(), stderr: stderr() }),
  );
  const end = () => killGroup(child);
  process.once('exit', end);
  void finished.then(() => process.off('exit', end));
  const kill = async () => {
    end();
    await finished;
  };
  return { child, finished, kill, output: () => stdout() + stderr() };
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  killIfAlive(-child.pid);
}
