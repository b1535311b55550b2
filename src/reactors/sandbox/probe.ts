/**
 * Determines which isolation of code works on this machine. It runs once, before the vault listens. From then on
 * every process starts with this isolation, and if one cannot start, its call is refused.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { frameHeaderBytes, frameKinds } from './frames.ts';
import { filterCommand, type Isolation, type IsolationChoice, isolations } from './isolation.ts';
import * as limits from './limits.ts';
import type { IsolationName } from './sandbox.ts';

/**
 * The machine does not permit the isolation that the operator requires, or could not start a process at the moment.
 */
export class IsolationError extends Error {
  override readonly name = 'IsolationError';
}

/** A machine that forbids an isolation refuses every time, so a single refusal was an accident. */
const refusalsMin = 2;

const retryMsMin = 10;
const retryMsMax = 500;

/**
 * @param choice the only isolation that may be used. Without it, the strongest that the machine permits, but never
 * `none`.
 * @returns `undefined` if there is no choice and the machine permits only `none`: then code does not run.
 * @throws IsolationError if the machine does not permit the choice, or if the system had too few descriptors,
 * processes, or too little memory for the test.
 */
export async function findIsolation(choice?: IsolationChoice): Promise<Isolation | undefined> {
  const ends = performance.now() + limits.probeMsMax;
  const command = choice === 'none' ? undefined : filterCommand();
  const isFiltered = command !== undefined && (await isPermitted(command, 'exits', ends));
  for (const way of isolations(isFiltered).filter(({ name }) => isCandidate(name, choice))) {
    if (await isPermitted(way.words, 'is ready', ends)) return way;
  }
  if (choice === undefined) return undefined;
  throw new IsolationError(
    `STRONGROOM_REACTOR_ISOLATION=${choice} is set, but this machine does not permit it: a process of ` +
      'code could not be started that way. Permit it, as docs/reactors.md describes, or unset the variable',
  );
}

function isCandidate(name: IsolationName, choice: IsolationChoice | undefined): boolean {
  if (choice === undefined) return name !== 'none';
  return choice === 'namespaces' ? name.startsWith('namespaces') : name === choice;
}

type Expected = 'exits' | 'is ready';
type StartAttempt = 'started' | 'refused' | 'exhausted';

/** Retries while the system is short of a resource: a shortage does not show what the machine permits. */
async function isPermitted(
  words: readonly string[],
  expected: Expected,
  ends: number,
): Promise<boolean> {
  let refusals = 0;
  let retryMs = retryMsMin;
  while (refusals < refusalsMin) {
    const result = await attempt(words, expected, ends);
    if (result === 'started') return true;
    if (result === 'refused') refusals += 1;
    else if (performance.now() + retryMs > ends) throw exhausted();
    else await pause(retryMs);
    retryMs = Math.min(2 * retryMs, retryMsMax);
  }
  return false;
}

function exhausted(): IsolationError {
  return new IsolationError(
    'The system has too few free file descriptors, processes or namespaces, or too little memory, to start a ' +
      'process for code. Raise the limits of this service, or set STRONGROOM_REACTORS=off',
  );
}

/** EAGAIN and ENOMEM also result from limits on processes and namespaces that other processes use up. */
const shortages: ReadonlySet<unknown> = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']);

/** The same errors in the messages of the launcher programs, which run without a locale. */
const shortageTexts =
  /Too many open files|Resource temporarily unavailable|Cannot allocate memory|out of memory|[Cc]annot fork/;

/**
 * `unshare` reports ENOSPC if all namespaces that the system allows are in use, which is also a shortage. If the
 * system allows none at all, the machine refuses.
 */
function lacksNamespaces(text: string): boolean {
  return (
    /No space left on device/.test(text) && namespaceLimits.every((file) => limitIn(file) !== 0)
  );
}

const namespaceLimits = ['user', 'mnt', 'pid', 'net', 'ipc', 'uts'].map(
  (kind) => `/proc/sys/user/max_${kind}_namespaces`,
);

/** `undefined` if the system has no such limit. */
function limitIn(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'latin1'));
  } catch {
    return undefined;
  }
}

const textLengthMax = 8_192;

function attempt(
  words: readonly string[],
  expected: Expected,
  ends: number,
): Promise<StartAttempt> {
  const { promise, resolve } = Promise.withResolvers<StartAttempt>();
  const [command = '', ...args] = words;
  const startMs = Math.max(0, ends - performance.now());
  let child: ReturnType<typeof start>;
  try {
    child = start(command, args);
  } catch (error) {
    // Some shortages reject; others raise an event.
    return Promise.resolve(isShortage(error) ? 'exhausted' : 'refused');
  }
  let text = '';
  let output = Buffer.alloc(0);
  let result: StartAttempt | undefined;
  const finish = (one: StartAttempt) => {
    result ??= one;
    kill(child.pid);
  };
  const timer = setTimeout(() => finish('exhausted'), startMs);
  child.on('error', (error) => {
    clearTimeout(timer);
    resolve(result ?? (isShortage(error) ? 'exhausted' : 'refused'));
  });
  child.on('close', (status, signal) => {
    clearTimeout(timer);
    if (status === 0 && expected === 'exits') result ??= 'started';
    const isShort = signal !== null || shortageTexts.test(text) || lacksNamespaces(text);
    resolve(result ?? (isShort ? 'exhausted' : 'refused'));
  });
  child.stdin?.on('error', () => undefined);
  child.stderr?.on('data', (chunk: Buffer) => {
    text = `${text}${chunk.toString('latin1')}`.slice(-textLengthMax);
  });
  child.stdout?.on('data', (chunk: Buffer) => {
    output = Buffer.concat([output, chunk]).subarray(0, frameHeaderBytes);
    if (expected === 'is ready' && output[frameHeaderBytes - 1] === frameKinds.ready) {
      finish('started');
    }
  });
  return promise;
}

function start(command: string, args: readonly string[]) {
  return spawn(command, args, {
    env: {},
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
}

function isShortage(error: unknown): boolean {
  return error instanceof Error && 'code' in error && shortages.has(error.code);
}

/** Kills the whole group, as the pool does. */
function kill(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
