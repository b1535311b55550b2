/** What the vault is to reach, and whether it has: one row a goal. */
import type { EngineResult, ScenarioResult } from './engine.ts';
import { type Column, digits, table } from './markdown.ts';
import { notMeasurable, pricesOf, ratio, slowDown, spread } from './report.ts';
import { medianOf } from './rounds.ts';

interface Goal {
  readonly name: string;
  readonly limit: number;
  readonly bound: 'at least' | 'at most';
  readonly unit?: string;
  readonly decimals?: number;
  /** Below it the measurement is broken, and nothing is said of the goal. */
  readonly measurableFrom?: number;
  /** Not a number where it was not measured. */
  readonly measured: (result: EngineResult) => number;
}

const ratioGoal = (name: string, limit: number): Goal => ({
  name: `${name}, ratio to the yardstick`,
  limit,
  bound: 'at least',
  decimals: 2,
  measured: (result) => inScenario(result, name, ratio),
});

const ratioGoals: Readonly<Record<string, readonly Goal[]>> = {
  embedded: [
    ratioGoal('create', 0.5),
    ratioGoal('get revealed', 0.7),
    ratioGoal('get masked', 0.7),
  ],
  postgres: [
    ratioGoal('create', 0.4),
    ratioGoal('get revealed', 0.45),
    ratioGoal('get masked', 0.45),
  ],
};

const otherGoals: readonly Goal[] = [
  {
    name: 'detokenize 100, values per CPU second',
    limit: 30_000,
    bound: 'at least',
    measured: (result) =>
      inScenario(result, 'detokenize 100', ({ measurements }) =>
        medianOf(measurements, 'vault', 'valuesPerCpuSecond'),
      ),
  },
  {
    name: 'bulk import, tokens a second',
    limit: 15_000,
    bound: 'at least',
    measured: (result) =>
      inScenario(result, 'bulk import', ({ measurements }) =>
        medianOf(measurements, 'vault', 'perSecond'),
      ),
  },
  {
    name: 'p99 over p50, worst scenario',
    limit: 5,
    bound: 'at most',
    decimals: 1,
    measured: (result) => worst(scenariosOf(result).map(spread)),
  },
  {
    name: 'slower with many tokens, worst scenario',
    limit: 1.25,
    bound: 'at most',
    unit: 'times',
    decimals: 2,
    measured: ({ passes: [few, many] }) =>
      few && many ? worst(many.results.map((one) => slowDown(one, few))) : Number.NaN,
  },
  {
    name: 'on disk, a card token with one index',
    limit: 1_300,
    bound: 'at most',
    unit: 'bytes',
    measured: ({ passes }) => worst(passes.map(({ bytesPerToken }) => bytesPerToken)),
  },
  {
    name: 'resident while loaded, worst scenario',
    limit: 120,
    bound: 'at most',
    unit: 'MB',
    measured: (result) =>
      worst(
        scenariosOf(result).map(({ measurements }) =>
          medianOf(measurements, 'vault', 'residentBytes'),
        ),
      ) / 1e6,
  },
  {
    name: 'ready after start',
    limit: 500,
    bound: 'at most',
    unit: 'ms',
    measured: ({ readyMsEmpty, passes }) =>
      worst([readyMsEmpty, ...passes.map(({ readyMs }) => readyMs)]),
  },
  priceGoal('get revealed', 'the audit log', 25),
  priceGoal('create with idempotency key', 'the idempotency key', 20),
];

function priceGoal(scenario: string, promise: string, limit: number): Goal {
  return {
    name: `${scenario}, price of ${promise}`,
    limit,
    bound: 'at most',
    unit: '%',
    measurableFrom: 0,
    measured: ({ passes: [few] }) => {
      const price =
        few && pricesOf(few).find((one) => one.scenario === scenario && one.promise === promise);
      return price ? price.share * 100 : Number.NaN;
    },
  };
}

/** Of a scenario of the first pass, which has the fewest tokens. */
function inScenario(
  { passes: [few] }: EngineResult,
  name: string,
  measured: (result: ScenarioResult) => number,
): number {
  const found = few?.results.find(({ scenario }) => scenario.name === name);
  return found ? measured(found) : Number.NaN;
}

function scenariosOf({ passes }: EngineResult): readonly ScenarioResult[] {
  return passes.flatMap(({ results }) => results);
}

function worst(values: readonly number[]): number {
  return Math.max(...values.filter((value) => !Number.isNaN(value)));
}

interface Verdict {
  readonly goal: Goal;
  readonly measured: number;
}

const columns: readonly Column<Verdict>[] = [
  {
    title: 'goal',
    cell: ({ goal }) => `${goal.name}: ${goal.bound} ${formatted(goal, goal.limit)}`,
  },
  { title: 'measured', cell: ({ goal, measured }) => formatted(goal, measured) },
  { title: 'met?', cell: met },
];

/** Goals that were not measured in this run are left out. */
export function goalTable(result: EngineResult): string {
  const goals = [...(ratioGoals[result.engine] ?? []), ...otherGoals];
  const verdicts = goals
    .map((goal) => ({ goal, measured: goal.measured(result) }))
    .filter(({ measured }) => Number.isFinite(measured));
  return table(columns, verdicts);
}

function formatted({ decimals = 0, unit = '' }: Goal, value: number): string {
  return `${digits(value, decimals)} ${unit}`.trimEnd();
}

function met({ goal: { bound, limit, measurableFrom = -Infinity }, measured }: Verdict): string {
  if (measured < measurableFrom) return notMeasurable;
  const over = bound === 'at most' ? measured / limit - 1 : 1 - measured / limit;
  const direction = bound === 'at most' ? 'over' : 'short';
  return over <= 0 ? 'yes' : `no, ${digits(over * 100)} % ${direction}`;
}
