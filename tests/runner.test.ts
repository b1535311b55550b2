/** A defect fails the run, and is named, also where its file passes when it runs again alone. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { failedFiles, finalOf, linesOf, type RunResult, summaryOf } from './support/results.ts';
import { temporaryDirectory } from './support/temporary.ts';

const runFiles = join(import.meta.dirname, 'support', 'run-files.ts');

/** The first fails while there is no file `done`, which it then makes; the second always fails; a third never. */
const files = {
  'once.test.mjs': `
    import { existsSync, writeFileSync } from 'node:fs';
    import { describe, test } from 'node:test';
    describe('a suite', () => {
      test('fails once', () => {
        if (existsSync('done')) return;
        writeFileSync('done', '');
        throw new Error('once');
      });
      test('passes', () => {});
      test('is skipped', { skip: true }, () => {});
    });`,
  'twice.test.mjs': `
    import test from 'node:test';
    test('fails', () => { throw new Error('always'); });
    test('passes', () => {});`,
  'never.test.mjs': `
    import test from 'node:test';
    test('passes', () => {});`,
};

test('a file that fails twice fails the run, and one that failed once is named', async (t) => {
  const directory = directoryWith(t);
  const first = await runIn(directory, Object.keys(files));
  assert.deepEqual(failedFiles(first).toSorted(), ['once.test.mjs', 'twice.test.mjs']);
  const outcome = { run: { label: '' }, first, again: await runIn(directory, failedFiles(first)) };

  const final = finalOf(outcome);
  assert.deepEqual(
    final.filter(({ failed }) => failed.length > 0).map(({ file }) => file),
    ['twice.test.mjs'],
  );
  assert.deepEqual(linesOf(outcome).toSorted(), [
    '    ⚠ a suite › fails once',
    '    ✖ fails',
    '⚠ FAILED FIRST, and passed when it ran again alone: once.test.mjs',
    '✖ FAILED TWICE: twice.test.mjs',
  ]);
  assert.deepEqual(summaryOf(final, 5), [
    'ℹ tests 6',
    'ℹ suites 1',
    'ℹ pass 4',
    'ℹ fail 1',
    'ℹ cancelled 0',
    'ℹ skipped 1',
    'ℹ todo 0',
    'ℹ duration_ms 5.000',
  ]);
});

test('a file whose process ends before its tests fails', async (t) => {
  const directory = directoryWith(t);
  writeFileSync(join(directory, 'ends.test.mjs'), 'process.exit(3);');
  assert.deepEqual(failedFiles(await runIn(directory, ['ends.test.mjs'])), ['ends.test.mjs']);
});

function directoryWith(t: TestContext): string {
  const directory = temporaryDirectory(t);
  for (const [name, source] of Object.entries(files)) writeFileSync(join(directory, name), source);
  return directory;
}

async function runIn(directory: string, paths: readonly string[]): Promise<RunResult> {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const runner = fork(runFiles, paths, {
    cwd: directory,
    execArgv: [],
    env: {
      ...environment,
      TEST_AT_ONCE: '1',
      TEST_MS_MAX: '60000',
      TEST_PRELOAD: 'data:text/javascript,',
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [[result]] = await Promise.all([once(runner, 'message'), once(runner, 'close')]);
  return result;
}
