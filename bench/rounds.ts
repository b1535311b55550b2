/** Subjects that are measured one after the other in every round, so that whatever slows the machine slows them alike. */
import { setTimeout as pause } from 'node:timers/promises';
import type { LoadResult } from './job.ts';
import { median } from './markdown.ts';
import { using, type Watched } from './resources.ts';
import { warmUp } from './warm-up.ts';

export interface Subject {
  readonly name: string;
  readonly watched: Watched;
  /** Of one request, or of one line. */
  readonly values: number;
  /** The yardstick, which does the same for every scenario, is warm. */
  readonly isWarm: boolean;
  shoot(seconds: number): Promise<LoadResult>;
}

/** What one subject did in one round. */
export interface Measurement {
  readonly perSecond: number;
  readonly valuesPerSecond: number;
  /** For each second of processor time, without the database's. */
  readonly valuesPerCpuSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuSecondsPer1000: number;
  readonly databaseCpuSecondsPer1000: number;
  readonly residentBytes: number;
  readonly generatorCores: number;
  readonly failed: number;
}

/** By the subject's name, a measurement for each round. */
export type Measurements = Readonly<Record<string, readonly Measurement[]>>;

export interface RoundsOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmsUp: boolean;
  readonly say: (text: string) => void;
}

/** What one subject has left behind, such as a write-ahead log to be tidied, is not the next one's load. */
const restMs = 50;

export async function measureRounds(
  subjects: readonly Subject[],
  { rounds, seconds, warmsUp, say }: RoundsOptions,
): Promise<Measurements> {
  for (const { watched, shoot } of subjects.filter(({ isWarm }) => warmsUp && !isWarm)) {
    await warmUp({ pid: watched.pid, shoot });
  }
  const measurements = new Map(subjects.map(({ name }) => [name, [] as Measurement[]]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const subject of subjects) {
      await pause(restMs);
      measurements.get(subject.name)?.push(await measure(subject, seconds));
    }
    const line = [...measurements].map(
      ([name, done]) => `${name} ${done.at(-1)?.perSecond.toFixed(0)}/s`,
    );
    say(`round ${round}: ${line.join(', ')}`);
  }
  return Object.fromEntries(measurements);
}

async function measure(subject: Subject, seconds: number): Promise<Measurement> {
  const { watched, values } = subject;
  const { result, used } = await using(watched, () => subject.shoot(seconds));
  const thousands = result.succeeded / 1_000;
  const perSecond = result.succeeded / result.seconds;
  return {
    perSecond,
    valuesPerSecond: perSecond * values,
    valuesPerCpuSecond: (result.succeeded * values) / used.cpuSeconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuSecondsPer1000: used.cpuSeconds / thousands,
    databaseCpuSecondsPer1000: used.databaseCpuSeconds / thousands,
    residentBytes: median(used.residentBytes),
    generatorCores: result.cores,
    failed: result.failed,
  };
}

/** The median of one number over the rounds of a subject. */
export function medianOf(
  measurements: Measurements,
  subject: string,
  name: keyof Measurement,
): number {
  return median((measurements[subject] ?? []).map((one) => one[name]));
}

/** One number of a subject over that of the other: the median of neighbouring rounds. */
export function ratioOf(
  measurements: Measurements,
  [subject, to]: readonly [string, string],
  name: keyof Measurement = 'perSecond',
): number {
  const others = measurements[to] ?? [];
  const own = measurements[subject] ?? [];
  return median(own.map((one, round) => one[name] / (others[round]?.[name] ?? Number.NaN)));
}
