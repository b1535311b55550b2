/** `npm run bench`: the vault against the yardstick, scenario by scenario, engine by engine. */

import { randomInt } from 'node:crypto';
import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { freePort } from '../tests/support/temporary.ts';
import { cardBody } from './cards.ts';
import { fsyncTimes } from './disk.ts';
import type { Job } from './job.ts';
import { applyLoad } from './load.ts';
import { cpuSeconds, residentBytes, type Server, startServer } from './process.ts';
import {
  failures,
  type Measurement,
  median,
  type Round,
  type ScenarioResult,
  table,
} from './report.ts';
import { engines, headersOf, startVault, type Vault } from './vault.ts';

const usage = `npm run bench -- [--seconds 10] [--rounds 5] [--engine NAME] [--scenario NAME]
  engines: embedded, postgres, none (the yardstick alone); scenarios: create, revealed, masked`;

const connections = 64;
const warmUpSeconds = 2;
const seedTokens = 1_000;

/** Answered by the yardstick when no vault says what an answer looks like. */
const sampleAnswer = JSON.stringify({
  id: '6f6a1c0e-7c3b-4a55-9d0e-0d0c3a1f5b9e',
  tenant_id: '1f1b7c9e-22f4-4b0a-8a57-3c8d5a0f4a11',
  type: 'card',
  data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 },
  created_by: '9b7c1e55-8c63-4a0f-8f6e-6b1a2f0d9c3e',
  created_at: '2026-01-01T00:00:00.000Z',
  fingerprint: 'CC2XvyoohnqecEq4r3FtXv6MdCx4TbaW1UUTdCCN5MNL',
  containers: ['/pci/high/'],
});

interface Scenario {
  readonly name: 'create' | 'revealed' | 'masked';
  readonly transform: 'reveal' | 'mask';
}

const scenarios: readonly Scenario[] = [
  { name: 'create', transform: 'reveal' },
  { name: 'revealed', transform: 'reveal' },
  { name: 'masked', transform: 'mask' },
];

const { values: flags } = parseArgs({
  options: {
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '5' },
    engine: { type: 'string', multiple: true },
    scenario: { type: 'string', multiple: true },
    help: { type: 'boolean', default: false },
  },
});
const seconds = Number(flags.seconds);
const roundCount = Number(flags.rounds);
const chosenEngines = flags.engine ?? Object.keys(engines);
const chosenScenarios = scenarios.filter(({ name }) => flags.scenario?.includes(name) ?? true);

let serial = randomInt(10 ** 9);

if (flags.help) say(usage);
else process.exitCode = await bench();

async function bench(): Promise<number> {
  describeMachine();
  const results: ScenarioResult[] = [];
  for (const engine of chosenEngines) {
    results.push(...(engine === 'none' ? await yardstickAlone() : await measureEngine(engine)));
  }
  say(`\n${table(results)}`);
  say('ratio: requests/s of the vault over those of the yardstick, median of neighbouring rounds');
  const failed = results.flatMap(({ rounds }) => [
    failures(rounds, 'vault'),
    failures(rounds, 'yardstick'),
  ]);
  return failed.some((count) => count > 0) ? 1 : 0;
}

function describeMachine(): void {
  const times = fsyncTimes();
  const slow = times.toSorted((a, b) => b - a)[1] ?? Number.NaN;
  say(`Node ${process.version}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}`);
  say(
    `fsync of a 512-byte append: median ${median(times).toFixed(2)} ms, p99 ${slow.toFixed(2)} ms`,
  );
  say(`${roundCount} rounds of ${seconds} s, ${connections} connections`);
}

async function yardstickAlone(): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const scenario of chosenScenarios) {
    const target = scenario.name === 'create' ? 'create' : { paths: ['/tokens/any'] };
    results.push(await measureScenario({ engine: 'none', scenario, target, answer: sampleAnswer }));
  }
  return results;
}

async function measureEngine(engine: string): Promise<ScenarioResult[]> {
  const open = engines[engine];
  if (open === undefined) throw new Error(`there is no engine ${engine}\n${usage}`);
  const vault = await startVault(await open());
  try {
    say(`\n${engine}: ready after ${vault.server.readyMs.toFixed(0)} ms with an empty store`);
    const results: ScenarioResult[] = [];
    for (const scenario of chosenScenarios)
      results.push(await onVault({ engine, scenario, vault }));
    return results;
  } finally {
    await vault.close();
  }
}

interface OnVault {
  readonly engine: string;
  readonly scenario: Scenario;
  readonly vault: Vault;
}

async function onVault({ engine, scenario, vault }: OnVault): Promise<ScenarioResult> {
  const key = await vault.createApplication(scenario.transform);
  if (scenario.name === 'create') {
    const before = await vault.restart();
    const result = await measureScenario({ engine, scenario, vault, key, target: 'create' });
    const after = await vault.restart();
    const perToken = (after.storedBytes - before.storedBytes) / result.vaultRequests;
    const ready = vault.server.readyMs.toFixed(0);
    say(
      `${engine}: ${perToken.toFixed(0)} bytes on disk per token; ready after ${ready} ms with them`,
    );
    return result;
  }
  const ids: string[] = [];
  for (let count = 0; count < seedTokens; count += 1) {
    serial += 1;
    ids.push(await vault.createToken(key, cardBody(serial)));
  }
  const target = { paths: ids.map((id) => `/tokens/${id}`) };
  const answer = await vault.getToken(key, ids[0] ?? '');
  return measureScenario({ engine, scenario, vault, key, target, answer });
}

interface ScenarioRun {
  readonly engine: string;
  readonly scenario: Scenario;
  readonly target: 'create' | { readonly paths: readonly string[] };
  readonly vault?: Vault;
  readonly key?: string;
  readonly answer?: string;
}

/** Alternates the two sides, the yardstick first, after a warm-up of each that is not counted. */
async function measureScenario(run: ScenarioRun): Promise<ScenarioResult> {
  const yardstick = await startYardstick(run.answer ?? sampleAnswer);
  const { vault } = run;
  const rounds: Round[] = [];
  let vaultRequests = 0;
  const measureYardstick = (time: number) => measure({ run, seconds: time, server: yardstick });
  const measureVault = async (time: number) => {
    if (vault === undefined) return undefined;
    const { server, storage } = vault;
    const measurement = await measure({ run, seconds: time, server, storage });
    vaultRequests += measurement.succeeded;
    return measurement;
  };
  await measureYardstick(warmUpSeconds);
  await measureVault(warmUpSeconds);
  for (let count = 0; count < roundCount; count += 1) {
    const base = await measureYardstick(seconds);
    const ours = await measureVault(seconds);
    rounds.push(ours === undefined ? { yardstick: base } : { yardstick: base, vault: ours });
    say(`${run.engine} ${run.scenario.name} round ${count + 1}: ${line(base)}; ${line(ours)}`);
  }
  await yardstick.stop();
  return { engine: run.engine, scenario: run.scenario.name, rounds, vaultRequests };
}

async function startYardstick(answer: string): Promise<Server> {
  const port = await freePort();
  const env = { YARDSTICK_PORT: String(port), YARDSTICK_ANSWER: answer };
  return startServer({ command: ['bench/yardstick.ts'], port, env, readyPath: '/' });
}

interface Side {
  readonly run: ScenarioRun;
  readonly seconds: number;
  readonly server: Server;
  readonly storage?: { cpuSeconds(): number };
}

async function measure({ run, seconds, server, storage }: Side): Promise<Measurement> {
  const job: Job = {
    url: server.url,
    headers: headersOf(run.key ?? 'none'),
    seconds,
    connections,
    work: run.target === 'create' ? { serial } : run.target,
  };
  const cpuBefore = cpuSeconds(server.pid);
  const databaseBefore = storage?.cpuSeconds() ?? 0;
  const load = await applyLoad(job);
  const cpu = cpuSeconds(server.pid) - cpuBefore;
  const databaseCpu = (storage?.cpuSeconds() ?? 0) - databaseBefore;
  if (run.target === 'create') serial += load.succeeded + load.failed + connections;
  return {
    succeeded: load.succeeded,
    requestsPerSecond: load.succeeded / load.seconds,
    p50Ms: load.p50Ms,
    p99Ms: load.p99Ms,
    cpuSecondsPer1000: (cpu / load.succeeded) * 1000,
    databaseCpuSecondsPer1000: (databaseCpu / load.succeeded) * 1000,
    residentBytes: residentBytes(server.pid),
    generatorCores: load.cores,
    failed: load.failed,
  };
}

function line(measurement: Measurement | undefined): string {
  if (measurement === undefined) return 'no vault';
  return `${measurement.requestsPerSecond.toFixed(0)}/s, p99 ${measurement.p99Ms.toFixed(1)} ms`;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
