/** What to measure and for how long, as the command line says. */
import { parseArgs } from 'node:util';
import { type ApplyLoad, defaultGenerator, loadBy } from './load.ts';
import { type Scenario, scenarios } from './scenarios.ts';
import { engineOf, engines } from './storage.ts';

export const usage = `npm run bench -- [options]
  --full            longer rounds, then all again with a million tokens present
  --engine NAME     ${Object.keys(engines).join(' or ')}
  --scenario NAME   may be repeated: ${scenarios.map(({ name }) => name).join(', ')}
  --seconds N       of each round
  --rounds N        of each scenario
  --tokens N        measure all again with so many tokens present
  --threads N,N     reads, creates and an import with so many request threads, in place of all else
  --generator NAME  wrk or autocannon; wrk where the machine has it`;

/** Present in the first pass. */
export const fewTokens = 10_000;

export interface Plan {
  readonly engines: readonly string[];
  readonly scenarios: readonly Scenario[];
  readonly seconds: number;
  /** How often the vault is started for one median. */
  readonly starts: number;
  /** Present in a second pass, if there is one. */
  readonly manyTokens: number | undefined;
  /** Numbers of request threads to compare. */
  readonly threads: readonly number[] | undefined;
  readonly generator: string;
  readonly load: ApplyLoad;
  readonly roundsOf: (scenario: Scenario) => number;
}

/** @returns `undefined` when only the usage was asked for. */
export function readPlan(): Plan | undefined {
  const { values: flags } = parseArgs({
    options: {
      full: { type: 'boolean', default: false },
      engine: { type: 'string', multiple: true, default: Object.keys(engines) },
      scenario: { type: 'string', multiple: true },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      tokens: { type: 'string' },
      threads: { type: 'string' },
      generator: { type: 'string', default: defaultGenerator },
      help: { type: 'boolean', default: false },
    },
  });
  if (flags.help) return undefined;
  for (const name of flags.engine) engineOf(name);
  const { full } = flags;
  return {
    engines: flags.engine,
    scenarios: chosenScenarios(flags.scenario),
    seconds: wholeNumber(flags.seconds) ?? (full ? 4 : 1),
    starts: full ? 7 : 3,
    manyTokens: manyTokensOf(flags.tokens) ?? (full ? 1_000_000 : undefined),
    threads: flags.threads?.split(',').map((text) => wholeNumber(text) ?? 1),
    generator: flags.generator,
    load: loadBy(flags.generator),
    roundsOf: ({ rounds }) => wholeNumber(flags.rounds) ?? rounds[full ? 'full' : 'short'],
  };
}

function chosenScenarios(names: readonly string[] | undefined): readonly Scenario[] {
  if (names === undefined) return scenarios;
  return names.map((name) => {
    const scenario = scenarios.find((one) => one.name === name);
    if (scenario === undefined) throw new Error(`there is no scenario ${name}\n${usage}`);
    return scenario;
  });
}

/** wrk measures whole seconds only. */
function manyTokensOf(text: string | undefined): number | undefined {
  const number = wholeNumber(text);
  if (number !== undefined && number <= fewTokens) {
    throw new Error(`--tokens takes more than the ${fewTokens} of the first pass`);
  }
  return number;
}

function wholeNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new Error(`"${text}" is not a whole number above 0`);
}
