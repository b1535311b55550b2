/**
 * Runs the test files that are named, in their order, so many at once, and sends its parent the result of each.
 * `node --test` sorts them by name, and what takes longest would begin last, with one core idle.
 */
import { run } from 'node:test';
import { spec, type TestEvent } from 'node:test/reporters';
import { collectResults, isOfTheSummary, type RunResult } from './results.ts';

const { TEST_AT_ONCE, TEST_MS_MAX, TEST_PRELOAD } = process.env;
const running = new Set<string>();
const stop = new AbortController();
const results = collectResults();

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    process.stdout.write(`Interrupted while these ran: ${[...running].join(', ')}\n`);
    stop.abort();
  });
}

run({
  files: process.argv.slice(2),
  concurrency: Number(TEST_AT_ONCE),
  timeout: Number(TEST_MS_MAX),
  execArgv: [`--import=${TEST_PRELOAD}`],
  signal: stop.signal,
})
  .on('test:dequeue', ({ name, nesting }) => void (nesting === 0 && running.add(name)))
  .on('test:complete', ({ name, nesting }) => void (nesting === 0 && running.delete(name)))
  .on('test:summary', ({ success }) => {
    if (!success) process.exitCode = 1;
  })
  .compose(counted)
  .compose(spec)
  .pipe(process.stdout);

/** Notes each event, and leaves out the closing numbers: the runner prints those of all its runs together. */
async function* counted(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    results.add(event);
    if (!isOfTheSummary(event)) yield event;
  }
  const result: RunResult = { files: results.files(), isInterrupted: stop.signal.aborted };
  process.send?.(result);
}
