/** Numbers to text: medians, and a table that reads well in a terminal and in Markdown. */

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const low = sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
  const high = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return (low + high) / 2;
}

/** What one side did in one round. */
export interface Measurement {
  readonly succeeded: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuSecondsPer1000: number;
  readonly databaseCpuSecondsPer1000: number;
  readonly residentBytes: number;
  readonly generatorCores: number;
  readonly failed: number;
}

export interface Round {
  readonly yardstick: Measurement;
  /** Absent when only the yardstick was measured. */
  readonly vault?: Measurement;
}

export interface ScenarioResult {
  readonly engine: string;
  readonly scenario: string;
  readonly rounds: readonly Round[];
  /** Answered by the vault with success, the warm-up included. */
  readonly vaultRequests: number;
}

type Column = readonly [title: string, cell: (result: ScenarioResult, side: Side) => string];
type Side = 'vault' | 'yardstick';

const columns: readonly Column[] = [
  ['engine', ({ engine }) => engine],
  ['scenario', ({ scenario }) => scenario],
  ['server', (_, side) => side],
  ['ratio', (result, side) => (side === 'vault' ? ratio(result).toFixed(2) : '')],
  ['req/s', ({ rounds }, side) => of(rounds, side, 'requestsPerSecond').toFixed(0)],
  ['p50 ms', ({ rounds }, side) => of(rounds, side, 'p50Ms').toFixed(1)],
  ['p99 ms', ({ rounds }, side) => of(rounds, side, 'p99Ms').toFixed(1)],
  ['CPU s/1000', ({ rounds }, side) => of(rounds, side, 'cpuSecondsPer1000').toFixed(3)],
  ['DB CPU s/1000', ({ rounds }, side) => of(rounds, side, 'databaseCpuSecondsPer1000').toFixed(3)],
  ['RSS MB', ({ rounds }, side) => (of(rounds, side, 'residentBytes') / 1e6).toFixed(0)],
  ['generator cores', ({ rounds }, side) => of(rounds, side, 'generatorCores').toFixed(2)],
  ['failed', ({ rounds }, side) => String(failures(rounds, side))],
];

/** One row per scenario and server; every number is the median of its rounds, `failed` the sum. */
export function table(results: readonly ScenarioResult[]): string {
  const rows = results.flatMap((result) =>
    (['yardstick', 'vault'] as const)
      .filter((side) => result.rounds.some((round) => round[side] !== undefined))
      .map((side) => columns.map(([, cell]) => cell(result, side))),
  );
  return markdown([columns.map(([title]) => title), ...rows]);
}

export function failures(rounds: readonly Round[], side: Side): number {
  return rounds.reduce((sum, round) => sum + (round[side]?.failed ?? 0), 0);
}

/** Of neighbouring rounds, so that a machine which slows down slows both sides. */
function ratio({ rounds }: ScenarioResult): number {
  return median(
    rounds.map(({ vault, yardstick }) =>
      vault === undefined ? Number.NaN : vault.requestsPerSecond / yardstick.requestsPerSecond,
    ),
  );
}

function of(rounds: readonly Round[], side: Side, name: keyof Measurement): number {
  return median(rounds.map((round) => round[side]?.[name] ?? Number.NaN));
}

function markdown(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lines = rows.map(
    (row) => `| ${row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join(' | ')} |`,
  );
  const rule = `|${widths.map((width) => `${'-'.repeat(width + 1)}:`).join('|')}|`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
