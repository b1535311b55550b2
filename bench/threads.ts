/** Reads, creates and an import with one request thread and with several, and what each kind of thread takes. */
import { setTimeout as pause } from 'node:timers/promises';
import { fewTokens, type Plan } from './flags.ts';
import type { LoadResult } from './job.ts';
import { describeMachine } from './machine.ts';
import { digits, median, table } from './markdown.ts';
import { grow, nobody, type Population } from './population.ts';
import { residentBytes, threadCpuSeconds } from './resources.ts';
import { type Requests, scenarios } from './scenarios.ts';
import { engineOf } from './storage.ts';
import { importTo, shootAt } from './subjects.ts';
import { startVault, type Vault } from './vault.ts';
import { warmUp } from './warm-up.ts';

const measured = [
  { name: 'get revealed', connections: [64, 256] },
  { name: 'create', connections: [64, 256] },
  { name: 'bulk import', connections: [1] },
];
const rounds = 3;
const restMs = 100;

interface Subject {
  readonly threads: number;
  readonly vault: Vault;
  readonly population: Population;
}

/** Milliseconds of processor time for a thousand requests, by kind of thread. */
interface Shares {
  readonly answering: number;
  readonly writer: number;
  /** The main thread where it does not answer, collectors of garbage, and others. */
  readonly rest: number;
}

interface Round extends Shares {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  readonly resident: number;
}

interface Line {
  readonly name: string;
  readonly threads: number;
  readonly connections: number;
  readonly rounds: readonly Round[];
}

/** @returns 1 when any request failed. */
export async function benchThreads(plan: Plan, say: (text: string) => void): Promise<number> {
  const machine = describeMachine(plan.generator);
  const pages: string[] = [machine];
  let failed = 0;
  for (const engine of plan.engines) {
    const subjects: Subject[] = [];
    try {
      for (const threads of plan.threads ?? []) subjects.push(await open(engine, threads));
      const lines: Line[] = [];
      const chosen = measured.filter(({ name }) => plan.scenarios.some((one) => one.name === name));
      for (const { name, connections: counts } of chosen) {
        for (const connections of counts) {
          lines.push(...(await takeTurns(subjects, { name, connections }, plan)));
          say(`${engine}: ${name} at ${connections} connections`);
        }
      }
      failed += lines.flatMap((line) => line.rounds).filter((round) => round.failed > 0).length;
      pages.push(`### ${engine}`, tableOf(lines));
    } finally {
      for (const { vault } of subjects) await vault.close();
    }
  }
  say(pages.join('\n\n'));
  return failed > 0 ? 1 : 0;
}

async function open(engine: string, threads: number): Promise<Subject> {
  const vault = await startVault(await engineOf(engine)(), { threads });
  const { population } = await grow(vault, nobody, fewTokens);
  return { threads, vault, population };
}

async function takeTurns(
  subjects: readonly Subject[],
  { name, connections }: Pick<Line, 'name' | 'connections'>,
  plan: Plan,
): Promise<Line[]> {
  const of = scenarios.find((scenario) => scenario.name === name)?.work;
  if (of === undefined) throw new Error(`there is no scenario ${name}`);
  const work = of === 'lines' ? of : { ...of, connections };
  const lines = subjects.map((subject) => ({ subject, rounds: [] as Round[] }));
  for (const { subject } of lines) {
    const load = (seconds: number) => apply(subject, work, { ...plan, seconds });
    await warmUp({ pid: subject.vault.server.pid, shoot: load });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const { subject, rounds } of lines) {
      await pause(restMs);
      rounds.push(await shoot(subject, work, plan));
    }
  }
  return lines.map(({ subject: { threads }, rounds }) => ({ name, threads, connections, rounds }));
}

function apply(
  { vault, population }: Subject,
  work: Requests | 'lines',
  { load, seconds }: Pick<Plan, 'load' | 'seconds'>,
): Promise<LoadResult> {
  if (work === 'lines') return importTo(vault, seconds);
  return shootAt(work, { stage: { vault, population }, load, seconds });
}

async function shoot(subject: Subject, work: Requests | 'lines', plan: Plan): Promise<Round> {
  const { threads, vault } = subject;
  const { pid } = vault.server;
  const before = new Map(threadCpuSeconds(pid).map((one) => [one.id, one.seconds]));
  const result = await apply(subject, work, plan);
  const used = { answering: 0, writer: 0, rest: 0 };
  for (const { id, name, seconds: all } of threadCpuSeconds(pid)) {
    const answers = threads === 1 ? id === pid : name === 'request';
    const kind = answers ? 'answering' : name === 'writer' ? 'writer' : 'rest';
    used[kind] += ((all - (before.get(id) ?? 0)) * 1_000_000) / result.succeeded;
  }
  const { succeeded, p50Ms, p99Ms, failed } = result;
  const perSecond = succeeded / result.seconds;
  return { perSecond, p50Ms, p99Ms, failed, resident: residentBytes(pid), ...used };
}

function tableOf(lines: readonly Line[]): string {
  const of = (name: keyof Round, count = 0, unit = 1) => ({
    cell: ({ rounds }: Line) => digits(median(rounds.map((round) => round[name])) / unit, count),
  });
  return table(
    [
      { title: 'scenario', cell: ({ name }: Line) => name },
      { title: 'connections', cell: ({ connections }) => digits(connections) },
      { title: 'threads', cell: ({ threads }) => digits(threads) },
      { title: '/s', ...of('perSecond') },
      { title: 'p50 ms', ...of('p50Ms', 1) },
      { title: 'p99 ms', ...of('p99Ms', 1) },
      { title: 'ms/1,000: answering', ...of('answering') },
      { title: 'writer', ...of('writer') },
      { title: 'rest', ...of('rest') },
      { title: 'resident MB', ...of('resident', 0, 2 ** 20) },
    ],
    lines,
  );
}
