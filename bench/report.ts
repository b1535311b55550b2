/** The tables of the page: each scenario against the yardstick, what a promise costs, and what is stored. */
import type { EngineResult, Pass, ScenarioResult } from './engine.ts';
import { type Column, digits, table } from './markdown.ts';
import { type Measurement, medianOf, ratioOf } from './rounds.ts';

type Name = keyof Measurement;

const of = ({ measurements }: ScenarioResult, name: Name, subject = 'vault') =>
  medianOf(measurements, subject, name);

const ofMany = (result: ScenarioResult, name: Name) =>
  hasManyValues(result) ? digits(of(result, name)) : '';

const columns: readonly Column<ScenarioResult>[] = [
  { title: 'scenario', cell: ({ scenario }) => scenario.name },
  { title: 'ratio', cell: (result) => digits(ratio(result), 2) },
  { title: 'CPU ratio', cell: (result) => digits(cpuRatio(result), 1) },
  { title: '/s', cell: (result) => digits(of(result, 'perSecond')) },
  { title: 'yardstick /s', cell: (result) => digits(of(result, 'perSecond', 'yardstick')) },
  { title: 'values/s', cell: (result) => ofMany(result, 'valuesPerSecond') },
  { title: 'values per CPU s', cell: (result) => ofMany(result, 'valuesPerCpuSecond') },
  { title: 'p50 ms', cell: (result) => digits(of(result, 'p50Ms'), 1) },
  { title: 'p99 ms', cell: (result) => digits(of(result, 'p99Ms'), 1) },
  { title: 'p99/p50', cell: (result) => digits(spread(result), 1) },
  { title: 'CPU s/1,000: vault', cell: (result) => digits(of(result, 'cpuSecondsPer1000'), 3) },
  { title: 'database', cell: (result) => ifAny(of(result, 'databaseCpuSecondsPer1000')) },
  { title: 'yardstick', cell: (result) => digits(of(result, 'cpuSecondsPer1000', 'yardstick'), 3) },
  { title: 'resident MB', cell: (result) => digits(of(result, 'residentBytes') / 1e6) },
  { title: 'generator cores', cell: (result) => digits(of(result, 'generatorCores'), 2) },
  { title: 'failed', cell: (result) => (failures(result) > 0 ? String(failures(result)) : '') },
];

/** Every number is the median of its rounds. */
export function scenarioTable({ results }: Pass, before?: Pass): string {
  const slowed: Column<ScenarioResult> = {
    title: 'slow-down',
    cell: (result) => (before ? digits(slowDown(result, before), 2) : ''),
  };
  return table([...columns.slice(0, 3), slowed, ...columns.slice(3)], results);
}

/** Of requests a second, vault to yardstick. */
export function ratio({ measurements }: ScenarioResult): number {
  return ratioOf(measurements, ['vault', 'yardstick']);
}

/** Of processor time a request, vault to yardstick; without that of the database. */
export function cpuRatio({ measurements }: ScenarioResult): number {
  return ratioOf(measurements, ['vault', 'yardstick'], 'cpuSecondsPer1000');
}

/** The quotient of p99 and p50. */
export function spread(result: ScenarioResult): number {
  return of(result, 'p99Ms') / of(result, 'p50Ms');
}

/** How many times as fast a scenario was before, measured by the yardstick of each time. */
export function slowDown(result: ScenarioResult, before: Pass): number {
  const earlier = before.results.find(({ scenario }) => scenario === result.scenario);
  return earlier === undefined ? Number.NaN : ratio(earlier) / ratio(result);
}

export function failures({ measurements }: ScenarioResult): number {
  return Object.values(measurements)
    .flat()
    .reduce((sum, { failed }) => sum + failed, 0);
}

export interface Price {
  readonly scenario: string;
  readonly promise: string;
  readonly perSecond: number;
  readonly perSecondWithout: number;
  /** Of the throughput without it, from 0 to 1. */
  readonly share: number;
}

const without = 'without ';

export function pricesOf({ results }: Pass): Price[] {
  return results.flatMap(({ scenario, measurements }) =>
    Object.keys(measurements)
      .filter((subject) => subject.startsWith(without))
      .map((subject) => ({
        scenario: scenario.name,
        promise: subject.slice(without.length),
        perSecond: medianOf(measurements, 'vault', 'perSecond'),
        perSecondWithout: medianOf(measurements, subject, 'perSecond'),
        share: 1 - ratioOf(measurements, ['vault', subject]),
      })),
  );
}

const priceColumns: readonly Column<Price>[] = [
  { title: 'scenario', cell: ({ scenario }) => scenario },
  { title: 'promise', cell: ({ promise }) => promise },
  { title: '/s with it', cell: ({ perSecond }) => digits(perSecond) },
  { title: '/s without', cell: ({ perSecondWithout }) => digits(perSecondWithout) },
  { title: 'price', cell: priceCell },
];

/** Of a promise without which the vault was slower: more was taken away than the promise. */
export const notMeasurable = 'not measurable';

function priceCell({ share }: Price): string {
  return share < 0 ? notMeasurable : `${digits(share * 100)} %`;
}

export function priceTable(pass: Pass): string {
  return table(priceColumns, pricesOf(pass));
}

interface Fact {
  readonly what: string;
  readonly value: string;
}

export function factTable({ readyMsEmpty, passes }: EngineResult): string {
  const facts: Fact[] = [{ what: 'ready, empty', value: `${digits(readyMsEmpty)} ms` }];
  for (const { tokens, seededPerSecond, readyMs, bytesPerToken, bytesPerEntry } of passes) {
    const among = `with ${digits(tokens)} tokens`;
    facts.push(
      { what: `ready, ${among}`, value: `${digits(readyMs)} ms` },
      { what: `imported, ${among} at the end`, value: `${digits(seededPerSecond)}/s` },
      { what: `on disk, ${among}, each`, value: `${digits(bytesPerToken)} bytes` },
      { what: 'on disk, its entry in the log', value: `${digits(bytesPerEntry)} bytes` },
    );
  }
  const columns: Column<Fact>[] = [
    { title: 'fact', cell: ({ what }) => what },
    { title: 'measured', cell: ({ value }) => value },
  ];
  return table(columns, facts);
}

function hasManyValues({ scenario: { work } }: ScenarioResult): boolean {
  return work === 'lines' || work.values !== undefined;
}

function ifAny(value: number): string {
  return value > 0 ? digits(value, 3) : '';
}
