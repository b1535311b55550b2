/** The queue before a commit: it takes exactly as much as its bounds say, and again once there is room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import {
  groupMax,
  monotonicMs,
  Queue,
  waitingMax,
  waitMsMax,
} from '../../src/store/commit/queue.ts';

const change = { operations: [], entries: [], provers: [], ceilings: [], grows: false };
const giveUpAt = monotonicMs() + waitMsMax;

/** How many of such changes the queue refuses, each at once and as `overloaded`. */
function refusals(queue: Queue, weights: readonly number[]): number {
  let refused = 0;
  for (const bytes of weights) {
    const end = (outcome: unknown) => {
      assert.ok(outcome instanceof VaultError && outcome.code === 'overloaded');
      refused += 1;
    };
    const weight = { rows: 1, bytes };
    queue.push({ caller: 'one', change, weight, giveUpAt, end });
  }
  return refused;
}

const times = (count: number, bytes: number) => new Array<number>(count).fill(bytes);

test('as many changes wait as the bound says, and not one more', () => {
  const queue = new Queue();
  assert.equal(refusals(queue, times(waitingMax.changes, 1)), 0);
  assert.equal(refusals(queue, [1]), 1);
});

test('queues of several threads hold together as much as one', () => {
  const queue = new Queue(4);
  assert.equal(refusals(queue, times(waitingMax.changes / 4, 1)), 0);
  assert.equal(refusals(queue, [1]), 1);
  assert.equal(refusals(new Queue(4), [waitingMax.bytes / 4 - 10, 11, 10, 1]), 2);
});

test('a group that is taken leaves room for as many changes', () => {
  const queue = new Queue();
  refusals(queue, times(waitingMax.changes, 1));
  assert.equal(queue.takeGroup().length, groupMax.changes);
  assert.equal(refusals(queue, times(groupMax.changes + 1, 1)), 1);
});

test('as many bytes wait as the bound says, and not one more', () => {
  const queue = new Queue();
  assert.equal(refusals(queue, [waitingMax.bytes - 10, 11]), 1);
  assert.equal(refusals(queue, [10]), 0);
  assert.equal(refusals(queue, [1]), 1);
});

test('a group that is taken leaves room for as many bytes', () => {
  const queue = new Queue();
  refusals(queue, [groupMax.bytes, waitingMax.bytes - groupMax.bytes]);
  assert.equal(queue.takeGroup().length, 1);
  assert.equal(refusals(queue, [groupMax.bytes + 1]), 1);
  assert.equal(refusals(queue, [groupMax.bytes]), 0);
});

test('what is larger than the bound is taken where nothing waits, and nothing beside it', () => {
  const queue = new Queue();
  assert.equal(refusals(queue, [waitingMax.bytes + 1]), 0);
  assert.equal(refusals(queue, [0]), 1);
});

test('a caller with many changes, or with large ones, does not hold up the change of another', () => {
  for (const [count, rows] of [
    [5_000, 1],
    [500, groupMax.rowsBesideOthers],
  ] as const) {
    const queue = new Queue();
    const push = (caller: string, at: number, ofRows: number) => {
      const weight = { rows: ofRows, bytes: 100 };
      const end = () => assert.fail('refused');
      queue.push({ caller, change, weight, giveUpAt: giveUpAt + at, end });
    };
    for (let at = 0; at < count; at += 1) push('hostile', at, rows);
    queue.takeGroup();
    push('other', count, 1);
    const group = queue.takeGroup();
    assert.ok(group.some(({ caller }) => caller === 'other'));
    const all = group.reduce((sum, { weight }) => sum + weight.rows, 0);
    assert.ok(all <= groupMax.rowsBesideOthers, `${all} rows`);
    const places = group.map((one) => one.giveUpAt);
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
    let left = count;
    for (let some = queue.takeGroup(); some.length > 0; some = queue.takeGroup()) {
      left -= some.length;
    }
    assert.ok(queue.isEmpty && left < count);
  }
});
