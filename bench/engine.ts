/** One engine: how it starts, what it stores, and every scenario with few tokens present and with many. */
import { fewTokens, type Plan } from './flags.ts';
import { median } from './markdown.ts';
import { grow, nobody } from './population.ts';
import type { Server } from './process.ts';
import { type PromiseName, promises } from './promises.ts';
import { type Measurements, measureRounds } from './rounds.ts';
import type { Scenario } from './scenarios.ts';
import { engineOf, type StoredBytes } from './storage.ts';
import { type Cast, type Stage, subjectsOf } from './subjects.ts';
import { startVault, type Vault } from './vault.ts';

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly measurements: Measurements;
}

/** The scenarios with so many tokens present at their beginning. */
export interface Pass {
  readonly tokens: number;
  readonly seededPerSecond: number;
  readonly readyMs: number;
  /** Of each token that was added, all of its indexes included. */
  readonly bytesPerToken: number;
  /** Of its entry in the log. */
  readonly bytesPerEntry: number;
  readonly results: readonly ScenarioResult[];
}

export interface EngineResult {
  readonly engine: string;
  readonly version: string;
  readonly readyMsEmpty: number;
  readonly passes: readonly Pass[];
}

type Say = (text: string) => void;

/** Opened, in reverse order closed when all is measured. */
type Opened = (() => Promise<void>)[];

export async function measureEngine(
  engine: string,
  { plan, yardstick, say }: { readonly plan: Plan; readonly yardstick: Server; readonly say: Say },
): Promise<EngineResult> {
  const opened: Opened = [];
  const progress = (text: string) => say(`${engine}: ${text}`);
  try {
    const vault = await open(engine, opened);
    const { readyMs: readyMsEmpty } = await restart(vault, plan.starts);
    const passes: Pass[] = [];
    let stage: Stage = { vault, population: nobody };
    for (const tokens of [fewTokens, plan.manyTokens]) {
      if (tokens === undefined) continue;
      const seeded = await seed(stage, tokens, plan.starts);
      const { seededPerSecond, readyMs } = seeded;
      progress(
        `${tokens} tokens, ${seededPerSecond.toFixed(0)}/s; ready in ${readyMs.toFixed(0)} ms`,
      );
      stage = seeded.stage;
      const without = passes.length === 0 ? await openWithout(engine, plan, opened) : {};
      const cast = { yardstick, stage, without, load: plan.load };
      passes.push({ ...seeded, tokens, results: await measureScenarios(cast, plan, progress) });
    }
    return { engine, version: vault.storage.version, readyMsEmpty, passes };
  } finally {
    for (const close of opened.reverse()) await close();
  }
}

/** Adds tokens until there are so many, and looks at what they take. */
async function seed({ vault, population: before }: Stage, tokens: number, starts: number) {
  const { stored: storedBefore } = await restart(vault, 1);
  const { population, tokensPerSecond } = await grow(vault, before, tokens);
  const { readyMs, stored } = await restart(vault, starts);
  const bytesPerEntry = (stored.log - storedBefore.log) / (tokens - before.count);
  const bytesOfBoth = (stored.all - storedBefore.all) / (tokens - before.count);
  return {
    stage: { vault, population },
    seededPerSecond: tokensPerSecond,
    readyMs,
    bytesPerToken: bytesOfBoth - bytesPerEntry,
    bytesPerEntry,
  };
}

async function open(engine: string, opened: Opened, without?: PromiseName): Promise<Vault> {
  const storage = await engineOf(engine)({ durable: without !== 'fsync' });
  const vault = await startVault(storage, { without });
  opened.push(() => vault.close());
  return vault;
}

/** A vault for each promise that a scenario takes back, with as many tokens. */
async function openWithout(engine: string, plan: Plan, opened: Opened): Promise<Cast['without']> {
  const names = (Object.keys(promises) as PromiseName[]).filter((name) =>
    plan.scenarios.some(({ prices = [] }) => prices.includes(name)),
  );
  const stages = await Promise.all(
    names.map(async (name): Promise<[PromiseName, Stage]> => {
      const vault = await open(engine, opened, name);
      return [name, { vault, population: (await grow(vault, nobody, fewTokens)).population }];
    }),
  );
  return Object.fromEntries(stages);
}

async function restart(vault: Vault, starts: number) {
  const readyMs: number[] = [];
  let stored: StoredBytes = { all: 0, log: 0 };
  for (let start = 0; start < starts; start += 1) {
    stored = await vault.restart();
    readyMs.push(vault.server.readyMs);
  }
  return { readyMs: median(readyMs), stored };
}

async function measureScenarios(cast: Cast, plan: Plan, say: Say): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  const warm = new Set<Scenario['code']>();
  for (const scenario of plan.scenarios) {
    const subjects = await subjectsOf(scenario, cast);
    const measurements = await measureRounds(subjects, {
      rounds: plan.roundsOf(scenario),
      seconds: plan.seconds,
      warmsUp: !warm.has(scenario.code),
      say: (text) => say(`${scenario.name}, ${text}`),
    });
    warm.add(scenario.code);
    results.push({ scenario, measurements });
  }
  return results;
}
