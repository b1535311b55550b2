/** The runner: every job again and again, never twice at once, until the vault stops. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log, LogFields } from '../../../src/base/telemetry/log.ts';
import { type Job, startJobs } from '../../../src/runtime/jobs/runner.ts';

function recorder() {
  const lines: { readonly message: string; readonly fields: LogFields | undefined }[] = [];
  const record = (message: string, fields?: LogFields) => void lines.push({ message, fields });
  const log: Log = { debug: record, info: record, warn: record, error: record };
  return { log, lines };
}

/** A job that tells of each of its runs and ends it when the test says so. */
function controlled(everyMs: number) {
  const runs: { end(count: number): void; fail(error: Error): void; stopping: AbortSignal }[] = [];
  let began = Promise.withResolvers<void>();
  const job: Job = {
    name: 'controlled',
    everyMs,
    run: (stopping) => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      runs.push({ end: resolve, fail: reject, stopping });
      began.resolve();
      began = Promise.withResolvers();
      return promise;
    },
  };
  const next = () => began.promise;
  return { job, runs, next };
}

test('a job runs at once and again after its interval, and logs what it did', async () => {
  const { log, lines } = recorder();
  const { job, runs, next } = controlled(1);
  const second = next().then(next);
  const jobs = startJobs([job], log);
  runs[0]?.end(3);
  await second;
  assert.deepEqual(lines, [
    { message: 'a job did its work', fields: { job: 'controlled', count: 3 } },
  ]);
  runs[1]?.end(0);
  await jobs.stop();
  assert.equal(lines.length, 1);
});

test('a job that fails is logged without the text of its error, and runs again', async () => {
  const { log, lines } = recorder();
  const { job, runs, next } = controlled(1);
  const second = next().then(next);
  const jobs = startJobs([job], log);
  runs[0]?.fail(new Error('4242424242424242'));
  await second;
  assert.match(lines[0]?.message ?? '', /failed and will be tried again/);
  assert.match(lines[0]?.fields?.reason ?? '', /^Error at .*runner\.test/);
  assert.equal(JSON.stringify(lines).includes('4242'), false);
  runs[1]?.end(0);
  await jobs.stop();
});

test('a job that runs often and fails rests for longer each time, until a run succeeds', async () => {
  const { log } = recorder();
  const { job, runs, next } = controlled(250);
  const pauses: number[] = [];
  const pause = async (ms: number) => void pauses.push(ms);
  const jobs = startJobs([job], log, { pause });
  for (let run = 0; run < 6; run++) {
    const begun = next();
    if (run === 5) runs[run]?.end(0);
    else runs[run]?.fail(new Error('broken'));
    await begun;
  }
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 10_000, 250]);
  runs[6]?.end(0);
  await jobs.stop();
});

test('each run that fails is counted, and no other', async () => {
  const { log } = recorder();
  const { job, runs, next } = controlled(1);
  let failures = 0;
  const second = next().then(next);
  const third = second.then(next);
  const jobs = startJobs([job], log, { onFailure: () => failures++ });
  runs[0]?.fail(new Error('broken'));
  await second;
  assert.equal(failures, 1);
  runs[1]?.end(1);
  await third;
  assert.equal(failures, 1);
  runs[2]?.end(0);
  await jobs.stop();
});

test('a job is never under way twice, and one that hangs holds up no other', async () => {
  const { log } = recorder();
  const slow = controlled(1);
  const quick = controlled(1);
  const jobs = startJobs([slow.job, quick.job], log);
  for (let run = 0; run < 5; run += 1) {
    const next = quick.next();
    quick.runs[run]?.end(0);
    await next;
  }
  assert.equal(slow.runs.length, 1);
  const stopped = jobs.stop();
  slow.runs[0]?.end(0);
  quick.runs.at(-1)?.end(0);
  await stopped;
});

test('stopping asks what is under way to end, waits for it, and begins nothing more', async () => {
  const { log } = recorder();
  const { job, runs } = controlled(1);
  const jobs = startJobs([job], log);
  let stopped = false;
  const stop = jobs.stop().then(() => {
    stopped = true;
  });
  assert.equal(runs[0]?.stopping.aborted, true);
  await new Promise(setImmediate);
  assert.equal(stopped, false);
  runs[0]?.end(0);
  await stop;
  assert.equal(runs.length, 1);
});
