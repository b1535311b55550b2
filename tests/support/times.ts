/** What each test file costs: seconds by the clock, and of the processor, its child processes included. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/** Where each file adds a line when it ends. */
const fileVariable = 'TEST_TIMES_FILE';

const root = join(import.meta.dirname, '..', '..');

interface FileTimes {
  readonly file: string;
  readonly processor: number;
  readonly clock: number;
}

/** Of this process and of the children that it has waited for; Linux tells it in hundredths of a second. */
function processorSeconds(): number {
  const [, fields = ''] = readFileSync('/proc/self/stat', 'latin1').split(/\) (?!.*\) )/);
  const [user, system, ofChildren, systemOfChildren] = fields.split(' ').slice(11, 15).map(Number);
  return ((user ?? 0) + (system ?? 0) + (ofChildren ?? 0) + (systemOfChildren ?? 0)) / 100;
}

/** Where the runner asked for it. */
export function noteTimesAtExit(): void {
  const to = process.env[fileVariable];
  if (to === undefined) return;
  process.once('exit', () => {
    const name = relative(root, process.argv[1] ?? '');
    const file = process.env['TEST_THREADS'] === undefined ? name : `${name} on two threads`;
    const clock = performance.now() / 1000;
    const times: FileTimes = { file, processor: processorSeconds(), clock };
    appendFileSync(to, `${JSON.stringify(times)}\n`);
  });
}

/** @returns the environment with which test files note their times, and what prints them, longest first. */
export function collectTimes() {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-times-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const to = join(directory, 'times');
  appendFileSync(to, '');
  const lines = (): string[] => {
    const noted = readFileSync(to, 'utf8').split('\n').filter(Boolean);
    const all = noted.map((line): FileTimes => JSON.parse(line));
    const sum = all.reduce((seconds, { processor }) => seconds + processor, 0);
    return [
      'processor  clock  (seconds)',
      ...all.toSorted((one, other) => other.processor - one.processor).map(lineOf),
      `${sum.toFixed(1)} s of the processor in ${all.length} files, without PostgreSQL`,
    ];
  };
  return { environment: { [fileVariable]: to }, lines };
}

function lineOf({ file, processor, clock }: FileTimes): string {
  return `${processor.toFixed(2).padStart(9)} ${clock.toFixed(1).padStart(6)}  ${file}`;
}
