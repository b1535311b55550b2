/** What the vault is to reach, and whether it has: one row a goal. */
import type { EngineResult, ScenarioResult } from './engine.ts';
import { type Column, digits, table } from './markdown.ts';
import { cpuRatio, notMeasurable, pricesOf, slowDown, spread } from './report.ts';
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

/** By engine; on PostgreSQL without the processor time of the database. */
interface Limits {
  readonly embedded: number;
  readonly postgres: number;
}

const goalsOf = (engine: keyof Limits): readonly Goal[] => [
  timeGoal('get revealed', { embedded: 2.5, postgres: 2.5 }[engine]),
  timeGoal('create', { embedded: 6, postgres: 5 }[engine]),
  rateGoal('detokenize 100', 'values', { embedded: 40_000, postgres: 32_000 }[engine]),
  rateGoal('bulk import', 'tokens', { embedded: 14_000, postgres: 16_000 }[engine]),
  bytesGoal(
    'a card token with one index',
    'bytesPerToken',
    { embedded: 700, postgres: 1_100 }[engine],
  ),
  bytesGoal('its entry in the log', 'bytesPerEntry', { embedded: 250, postgres: 350 }[engine]),
  ...otherGoals,
];

const otherGoals: readonly Goal[] = [
  {
    name: 'slower with many tokens, worst scenario',
    limit: 1.15,
    bound: 'at most',
    unit: 'times',
    decimals: 2,
    measured: ({ passes: [few, many] }) =>
      few && many ? worst(many.results.map((one) => slowDown(one, few))) : Number.NaN,
  },
  {
    name: 'p99 over p50, worst scenario',
    limit: 5,
    bound: 'at most',
    decimals: 1,
    measured: (result) => worst(scenariosOf(result).map(spread)),
  },
  {
    name: 'resident while 64 clients read',
    limit: 130,
    bound: 'at most',
    unit: 'MB',
    measured: (result) =>
      inScenario(result, 'get revealed', ({ measurements }) =>
        medianOf(measurements, 'vault', 'residentBytes'),
      ) / 1e6,
  },
  {
    name: 'ready after start',
    limit: 450,
    bound: 'at most',
    unit: 'ms',
    measured: ({ readyMsEmpty, passes }) =>
      worst([readyMsEmpty, ...passes.map(({ readyMs }) => readyMs)]),
  },
  priceGoal('get revealed', 'the audit log', 15),
  priceGoal('create with idempotency key', 'the idempotency key', 15),
];

/** How many times the processor time of the yardstick. */
function timeGoal(scenario: string, limit: number): Goal {
  return {
    name: `${scenario}, processor time over the yardstick's`,
    limit,
    bound: 'at most',
    decimals: 1,
    measured: (result) => inScenario(result, scenario, cpuRatio),
  };
}

function rateGoal(scenario: string, values: string, limit: number): Goal {
  return {
    name: `${scenario}, ${values} per processor second`,
    limit,
    bound: 'at least',
    measured: (result) =>
      inScenario(result, scenario, ({ measurements }) =>
        medianOf(measurements, 'vault', 'valuesPerCpuSecond'),
      ),
  };
}

function bytesGoal(what: string, of: 'bytesPerToken' | 'bytesPerEntry', limit: number): Goal {
  return {
    name: `on disk, ${what}`,
    limit,
    bound: 'at most',
    unit: 'bytes',
    measured: ({ passes }) => worst(passes.map((pass) => pass[of])),
  };
}

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
  const verdicts = goalsOf(result.engine as keyof Limits)
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
