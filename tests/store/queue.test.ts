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
    const reject = (error: unknown) => {
      assert.ok(error instanceof VaultError && error.code === 'overloaded');
      refused += 1;
    };
    queue.push({ change, weight: { rows: 1, bytes }, giveUpAt, resolve: () => undefined, reject });
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
