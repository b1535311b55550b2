/** Servers under measurement: started in a process of their own, ended with us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export interface Server {
  readonly url: string;
  readonly pid: number;
  /** From spawn to the first 200. */
  readonly readyMs: number;
  /** SIGTERM, and waits until it has closed. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** For the shell, at the root of the repository; it ends in an `exec`. */
  readonly script: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  /** Answers 200 as soon as the server can work. */
  readonly readyPath: string;
}

const root = join(import.meta.dirname, '..');
const pollMs = 2;
const readyMsMax = 30_000;
const responseMsMax = 1_000;
const outputCharactersMax = 4_000;

export async function startServer(options: ServerOptions): Promise<Server> {
  const started = performance.now();
  const child = spawn('sh', ['-c', options.script], {
    cwd: root,
    env: { ...inherited(), ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = tailOf(child);
  const end = () => child.kill('SIGKILL');
  process.once('exit', end);
  child.once('exit', () => process.off('exit', end));

  const url = `http://127.0.0.1:${options.port}`;
  while (!(await answers(url + options.readyPath))) {
    if (child.exitCode !== null || performance.now() - started > readyMsMax) {
      throw new Error(`${options.script} did not become ready:\n${output()}`);
    }
    await pause(pollMs);
  }
  const readyMs = performance.now() - started;

  return {
    url,
    pid: child.pid ?? 0,
    readyMs,
    async stop() {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function inherited(): Record<string, string | undefined> {
  const { PATH, TMPDIR } = process.env;
  return { PATH: dirname(process.execPath) + delimiter + PATH, TMPDIR, NODE_ENV: 'production' };
}

function tailOf(child: ChildProcess): () => string {
  let tail = '';
  const keep = (chunk: Buffer) => {
    tail = (tail + chunk.toString('utf8')).slice(-outputCharactersMax);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  return () => tail;
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(responseMsMax) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
