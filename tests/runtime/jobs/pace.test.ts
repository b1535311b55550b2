/** The pace of jobs: a rate that is kept with few rows, and a share of the time that is the requests'. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  batchAfter,
  batchMax,
  batchMin,
  createGentlePace,
  createPace,
  gentleBatch,
  gentleRestShare,
  restMs,
  restShareMin,
  rowsPerSecondMax,
} from '../../../src/runtime/jobs/pace.ts';

const never = new AbortController().signal;

test('a step is followed by so much rest that the rate is kept', () => {
  assert.equal(restMs({ rows: 70, tookMs: 4 }), 6);
  assert.equal(restMs({ rows: 0, tookMs: 0 }), 0);
});

test('a step that took longer is followed by a share of its own time', () => {
  assert.equal(restMs({ rows: 70, tookMs: 10 }), 10 * restShareMin);
  assert.equal(restMs({ rows: 70, tookMs: 1000 }), 1000 * restShareMin);
});

test('commits that are slow take as many rows as the rate needs, within bounds', () => {
  const takes = (rows: number) => (rows / rowsPerSecondMax) * 1000;
  assert.equal(batchAfter(0), batchMin);
  assert.equal(batchAfter(takes(batchMin)), batchMin);
  assert.equal(batchAfter(takes(batchMin + 7)), batchMin + 7);
  assert.equal(batchAfter(takes(batchMax)), batchMax);
  assert.equal(batchAfter(takes(batchMax) + 1), batchMax);
});

test('a step is timed from the end of the rest before it', async () => {
  let now = 0;
  const rests: number[] = [];
  const pause = async (ms: number) => {
    rests.push(ms);
    now += 1_000;
  };
  const pace = createPace(never, { now: () => now, pause });
  for (const [rows, tookMs] of [
    [70, 4],
    [0, 5],
    [70, 30],
  ] as const) {
    now += tookMs;
    await pace.rest(rows);
  }
  assert.deepEqual(rests, [6, 5 * restShareMin, 30 * restShareMin]);
  assert.equal(pace.batch, 210);
});

test('at the full rate many steps keep it, and none is larger than it must be', async () => {
  let now = 0;
  const pause = async (ms: number) => {
    now += ms;
  };
  const pace = createPace(never, { now: () => now, pause });
  let rows = 0;
  for (let step = 0; step < 100; step += 1) {
    assert.equal(pace.batch, batchMin);
    rows += pace.batch;
    now += 3;
    await pace.rest(pace.batch);
  }
  assert.equal(Math.round((rows / now) * 1000), rowsPerSecondMax);
});

test('a gentle pace takes few rows and rests longer as long as others commit', async () => {
  let now = 0;
  let commits = 0;
  let isBusy = false;
  const rests: number[] = [];
  const pause = async (ms: number) => {
    rests.push(ms);
    now += ms;
    if (isBusy) commits += 1;
  };
  const timer = { now: () => now, pause };
  const pace = createGentlePace({ stopping: never, timer, commits: () => commits });
  const step = async (tookMs: number) => {
    // What the step commits itself does not count.
    commits += 1;
    now += tookMs;
    await pace.rest(pace.batch);
    return pace.batch;
  };
  assert.equal(pace.batch, gentleBatch, 'nothing is known of others yet');
  assert.equal(await step(50), batchMax);
  assert.equal(rests.at(-1), 50);
  isBusy = true;
  assert.equal(await step(50), gentleBatch);
  assert.equal(await step(50), gentleBatch);
  assert.equal(rests.at(-1), 50 * gentleRestShare);
  isBusy = false;
  assert.equal(await step(150), gentleBatch, 'others may commit more');
  assert.equal(await step(150), batchMax);
  await step(50);
  assert.equal(rests.at(-1), 50, 'alone it rests as long as it works');
});
