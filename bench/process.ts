/** Servers under measurement: started in a process of their own, watched through /proc, ended with us. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
  /** Arguments of Node, from the root of the repository. */
  readonly command: readonly string[];
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  /** Answers 200 as soon as the server can work. */
  readonly readyPath: string;
}

const root = join(import.meta.dirname, '..');
const pollMs = 2;
const readyMsMax = 30_000;
const outputCharactersMax = 4_000;

/** USER_HZ is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

export async function startServer(options: ServerOptions): Promise<Server> {
  const started = performance.now();
  const child = spawn(process.execPath, options.command, {
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
      throw new Error(`${options.command.join(' ')} did not become ready:\n${output()}`);
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

/** Processor time of a process and all below it, in user and kernel mode. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid);
  const own = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  const below =
    children === '' ? [] : children.split(' ').map((child) => cpuSeconds(Number(child)));
  return own + below.reduce((sum, one) => sum + one, 0);
}

/** Processor time of the children of this process that have ended. */
export function endedChildrenCpuSeconds(): number {
  const fields = statFields(process.pid);
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
}

/** Resident memory of one process. */
export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(match?.[1] ?? Number.NaN) * 1024;
}

/** The fields after the command's name, which may itself contain spaces. */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function inherited(): Record<string, string | undefined> {
  const { PATH, TMPDIR } = process.env;
  return { PATH, TMPDIR, NODE_ENV: 'production' };
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
    const response = await fetch(url);
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
