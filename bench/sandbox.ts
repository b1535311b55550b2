/**
 * What a call of tenants' code costs, with the pool warm: processor time of the child and of the parent, calls
 * in a second, and memory, beside a plain Node child that evaluates the same code and keeps nobody out.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { pack } from '../tests/support/packed-program.ts';
import { descendants } from '../tests/support/running.ts';
import { type Column, digits, median, table } from './markdown.ts';

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '250' },
    rounds: { type: 'string', default: '3' },
    /** Measure what the package has in place of the sources. */
    packed: { type: 'boolean', default: false },
  },
});
// Fewer in all than a process serves before it is replaced: its processor time is read by its number.
const calls = Number(flags.calls);
/** By then an idle process has collected its garbage. */
const restMs = 3_000;
/** Processes count as warm from here on. */
const warmCalls = 20;
const goals = { cpuMs: 5, rate: 150, idleMb: 80 } as const;

const folder = flags.packed
  ? join(await pack(['sandbox/open', 'sandbox/probe']), 'dist/sandbox')
  : join(import.meta.dirname, '../src/reactors/sandbox');
const extension = flags.packed ? 'js' : 'ts';
const { openSandbox } = (await import(join(folder, `open.${extension}`))) as {
  openSandbox: typeof import('../src/reactors/sandbox/open.ts').openSandbox;
};
const { findIsolation } = (await import(join(folder, `probe.${extension}`))) as {
  findIsolation: typeof import('../src/reactors/sandbox/probe.ts').findIsolation;
};
const found = await findIsolation();
if (found === undefined) throw new Error('this machine permits no isolation');
const isolation = found;

const code = 'module.exports = function (req) { return { raw: req.args } }';
const input = { args: { amount: 1, currency: 'USD' }, configuration: {} };

/** Evaluates each line's code in the process itself. */
const plainScript = `
const lines = require('node:readline').createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { code, input } = JSON.parse(line);
  const module = { exports: {} };
  new Function('exports', 'require', 'module', code)(module.exports, require, module);
  process.stdout.write(JSON.stringify({ value: await module.exports(input) }) + '\\n');
});`;

interface Subject {
  readonly name: string;
  call(): Promise<unknown>;
}

interface Measured {
  readonly name: string;
  readonly cpuMs: number;
  readonly parentMs: number;
  readonly rate: number;
}

const sandbox = openSandbox(isolation, {
  bounds: { runningMax: 2, waitingMax: 64, waitingPerTenantMax: 64 },
});
const before = descendants().length;
const asked = {
  tenant: 'bench',
  code,
  contract: 'node-bt',
  input,
  bt: false,
  timeoutMs: 10_000,
} as const;
const modules = new Map<string, string>();
const subject: Subject = {
  name: 'sandbox',
  call: async () => {
    const result = await sandbox.run({ ...asked, modules, serve: async () => null });
    if (result.kind !== 'returned') throw new Error(JSON.stringify(result));
  },
};
await Promise.all([subject.call(), subject.call()]);
const sandboxPids = descendants();

const children = [startPlain(), startPlain()];
const plain: Subject = { name: 'plain Node child', call: () => callPlain() };

const measured: Measured[] = [];
for (let round = 0; round < Number(flags.rounds); round += 1) {
  measured.push(await measure(subject, sandboxPids));
  measured.push(
    await measure(
      plain,
      children.map(({ child }) => child.pid ?? 0),
    ),
  );
}
const resident = await idleMemory();
report();
for (const { child } of children) child.kill();
await sandbox.close();

interface Plain {
  readonly child: ChildProcess;
  readonly waiting: ((line: string) => void)[];
}

function startPlain(): Plain {
  const child = spawn(process.execPath, ['-e', plainScript], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting: ((line: string) => void)[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  return { child, waiting };
}

async function callPlain(): Promise<unknown> {
  const [one] = children.toSorted((a, b) => a.waiting.length - b.waiting.length);
  if (one === undefined) throw new Error('no child');
  const answered = new Promise<string>((resolve) => one.waiting.push(resolve));
  one.child.stdin?.write(`${JSON.stringify({ code, input })}\n`);
  return JSON.parse(await answered);
}

async function measure({ name, call }: Subject, pids: readonly number[]): Promise<Measured> {
  for (let at = 0; at < warmCalls; at += 1) await call();
  const spent: number[] = [];
  const own: number[] = [];
  for (let at = 0; at < calls; at += 1) {
    const [child, parent] = [ranMs(pids), process.cpuUsage()];
    await call();
    const { user, system } = process.cpuUsage(parent);
    own.push((user + system) / 1_000);
    // What follows a result, as preparing the next engine, falls into the next of these.
    spent.push(ranMs(pids) - child);
  }
  const begin = performance.now();
  let left = calls;
  const worker = async () => {
    while (left > 0) {
      left -= 1;
      await call();
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  const rate = calls / ((performance.now() - begin) / 1_000);
  return { name, cpuMs: median(spent), parentMs: median(own), rate };
}

/** Processor time of all threads of processes, in nanoseconds as the scheduler counts it. */
function ranMs(pids: readonly number[]): number {
  const times = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/task`).map((thread) => {
      const [ran = ''] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ');
      return Number(ran) / 1e6;
    }),
  );
  return times.reduce((sum, ms) => sum + ms, 0);
}

/** Of the pool with one process, once it rests. */
async function idleMemory() {
  const own = openSandbox(isolation);
  await own.run({ ...asked, modules, serve: async () => null });
  const known = new Set([...sandboxPids, ...children.map(({ child }) => child.pid)]);
  for (let at = 0; at < 100; at += 1) {
    await own.run({ ...asked, modules, serve: async () => null });
  }
  await setTimeout(restMs);
  const pids = descendants().filter((pid) => !known.has(pid));
  const sum = (file: string, pattern: RegExp) =>
    pids.reduce(
      (all, pid) =>
        all + Number(pattern.exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1] ?? 0) / 1024,
      0,
    );
  const memory = {
    rssMb: sum('status', /VmRSS:\s+(\d+)/),
    pssMb: sum('smaps_rollup', /^Pss:\s+(\d+)/m),
  };
  const { isolation: way } = own.state();
  await own.close();
  return { ...memory, isolation: way };
}

function report(): void {
  const of = (name: string) => measured.filter((one) => one.name === name);
  const column = (rows: readonly Measured[], read: (one: Measured) => number) =>
    median(rows.map(read));
  const rows = [subject.name, plain.name].map((name) => ({
    name,
    cpuMs: column(of(name), ({ cpuMs }) => cpuMs),
    parentMs: column(of(name), ({ parentMs }) => parentMs),
    rate: column(of(name), ({ rate }) => rate),
  }));
  const columns: readonly Column<Measured>[] = [
    { title: 'a trivial call', cell: ({ name }) => name },
    { title: 'child p50 ms', cell: ({ cpuMs }) => digits(cpuMs, 2) },
    { title: 'parent p50 ms', cell: ({ parentMs }) => digits(parentMs, 2) },
    { title: 'calls a second', cell: ({ rate }) => digits(rate) },
  ];
  const [ours, theirs] = rows;
  const ratio = (ours?.rate ?? 0) / (theirs?.rate ?? 1);
  process.stdout.write(`${table(columns, rows)}

Goals: ${goals.cpuMs} ms of processor time, ${goals.rate} calls a second. Throughput over the plain child: ${digits(ratio, 3)}.
Processes before the first call: ${before}. One idle process: ${digits(resident.rssMb)} MB resident, ${digits(resident.pssMb)} MB PSS (goal ${goals.idleMb}).
Isolation: ${resident.isolation}. Load: ${loadavg()[0]?.toFixed(1)} on ${cpus().length} cores.
`);
}
