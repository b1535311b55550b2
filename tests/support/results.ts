/** What each test file of a run came to, and what the runner prints when the files that failed have run again. */
import { relative } from 'node:path';
import type { EventData } from 'node:test';
import type { TestEvent } from 'node:test/reporters';

/** `on` where files that were named, as well, run again alone when they failed. */
export const againVariable = 'TEST_AGAIN';

/** The names, and the order, of the closing lines of `node:test`. */
const counted = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo'] as const;
const closing = new RegExp(`^(?:${counted.join('|')}|duration_ms) [\\d.]+$`);
const cancellations: ReadonlySet<unknown> = new Set([
  'cancelledByParent',
  'testAborted',
  'testTimeoutFailure',
]);

type Counts = Record<(typeof counted)[number], number>;

export interface FileResult {
  /** Its path from the root of the repository. */
  readonly file: string;
  readonly counts: Counts;
  /** The tests that failed, each with the suites around it. Not empty where the file failed. */
  readonly failed: readonly string[];
}

export interface RunResult {
  readonly files: readonly FileResult[];
  /** A signal, or a file that did not end, stopped the run: nothing is known of the files that had not ended. */
  readonly isInterrupted: boolean;
}

/** Puts together what the events of `run()` in `node:test` say of each file. */
export function collectResults() {
  const files = new Map<string, { counts: Counts; failed: string[]; path: string[] }>();
  const of = ({ entryFile, file }: EventData.LocationInfo) => {
    const name = relative(process.cwd(), entryFile ?? file ?? '');
    const known = files.get(name) ?? { counts: noTests(), failed: [], path: [] };
    files.set(name, known);
    return known;
  };
  return {
    add: (event: TestEvent): void => {
      if (event.type === 'test:start') {
        const { path } = of(event.data);
        path.splice(event.data.nesting, Infinity, event.data.name);
      }
      if (event.type !== 'test:pass' && event.type !== 'test:fail') return;
      const { counts, failed, path } = of(event.data);
      const outcome = outcomeOf(event);
      count(counts, event.data, outcome);
      const isItself = failureOf(event) !== 'subtestsFailed';
      if ((outcome === 'fail' || outcome === 'cancelled') && isItself) {
        failed.push([...path.slice(0, event.data.nesting), event.data.name].join(' › '));
      }
    },
    files: (): FileResult[] =>
      [...files].map(([file, { counts, failed }]) => ({ file, counts, failed })),
  };
}

/** As `node:test` counts: a suite is no test, and what is skipped or still to do can neither pass nor fail. */
function count(
  counts: Counts,
  { details }: EventData.TestPass | EventData.TestFail,
  outcome: keyof Counts,
): void {
  if (details.type === 'suite') {
    counts.suites += 1;
    return;
  }
  counts.tests += 1;
  counts[outcome] += 1;
}

type Ended = Extract<TestEvent, { type: 'test:pass' | 'test:fail' }>;

function outcomeOf(event: Ended): keyof Counts {
  if (event.data.skip !== undefined) return 'skipped';
  if (event.data.todo !== undefined) return 'todo';
  if (event.type === 'test:pass') return 'pass';
  return cancellations.has(failureOf(event)) ? 'cancelled' : 'fail';
}

function failureOf(event: Ended): unknown {
  if (event.type === 'test:pass') return undefined;
  const { error } = event.data.details;
  return 'failureType' in error ? error.failureType : undefined;
}

/** @returns whether it is one of the closing lines, which `node:test` prints of each run that it makes. */
export function isOfTheSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && data.entryFile === undefined && closing.test(data.message);
}

export function failedFiles({ files }: RunResult): readonly string[] {
  return files.filter(({ failed }) => failed.length > 0).map(({ file }) => file);
}

interface Outcome {
  readonly run: { readonly label: string };
  readonly first: RunResult;
  /** Of the files that failed, in a second run of their own; without it they have had none. */
  readonly again?: RunResult;
}

/** @returns by name what failed first and passed alone, and what failed for good; nothing where all passed at once. */
export function linesOf({ run, first, again }: Outcome): readonly string[] {
  const secondOf = new Map(again?.files.map((result) => [result.file, result]));
  return first.files
    .filter(({ failed }) => failed.length > 0)
    .flatMap(({ file, failed }) => {
      const second = secondOf.get(file);
      const name = `${file}${run.label}`;
      if (second?.failed.length === 0) {
        const heading = `⚠ FAILED FIRST, and passed when it ran again alone: ${name}`;
        return [heading, ...failed.map((test) => `    ⚠ ${test}`)];
      }
      const last = second ?? { failed };
      const heading = `✖ FAILED${second === undefined ? '' : ' TWICE'}: ${name}`;
      return [heading, ...last.failed.map((test) => `    ✖ ${test}`)];
    });
}

/** @returns the result of each file, which is that of its last run. */
export function finalOf({ first, again }: Outcome): readonly FileResult[] {
  const secondOf = new Map(again?.files.map((result) => [result.file, result]));
  return first.files.map((result) => secondOf.get(result.file) ?? result);
}

/** @returns the closing lines of `node:test` for the files together. */
export function summaryOf(files: readonly FileResult[], milliseconds: number): readonly string[] {
  const sums = noTests();
  for (const { counts } of files) for (const name of counted) sums[name] += counts[name];
  return [
    ...counted.map((name) => `ℹ ${name} ${sums[name]}`),
    `ℹ duration_ms ${milliseconds.toFixed(3)}`,
  ];
}

function noTests(): Counts {
  return { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 };
}
