/** Processes with code of tenants, of all pools together, fit into the memory that the vault may use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openSandbox } from '../../src/sandbox/open.ts';
import {
  createBudgetMemory,
  endBudgetOf,
  processBudget,
  processesByMemory,
} from '../../src/sandbox/process-budget.ts';
import { callOf, endOf, moduleOf } from '../support/code-calls.ts';
import { descendants } from '../support/running.ts';
import { isolation } from '../support/sandboxes.ts';

const mebibyte = 2 ** 20;
const gibibyte = 1024 * mebibyte;

test('all processes at their largest fit beside the vault, at every limit of a container', () => {
  for (let memoryBytes = gibibyte; memoryBytes < 64 * gibibyte; memoryBytes += 100 * mebibyte) {
    const { calls, checks } = processesByMemory(memoryBytes);
    assert.ok(calls >= 1 && checks >= 1 && calls + checks <= 64);
    const most = 384 * mebibyte + (calls + checks) * 240 * mebibyte;
    assert.ok(most <= memoryBytes, `${calls} and ${checks} with ${memoryBytes}`);
  }
  // Where not even two fit there is one of each: code runs, one call after the other.
  assert.deepEqual(processesByMemory(256 * mebibyte), { calls: 1, checks: 1 });
  assert.deepEqual(processesByMemory(2 * gibibyte), { calls: 5, checks: 1 });
});

test('threads take from one budget, and what an ended thread had is free again', () => {
  const memory = createBudgetMemory(2 * gibibyte);
  const threads = [0, 1, 2].map((thread) => processBudget(memory, thread).calls);
  const [first, second] = threads;
  assert.ok(first && second);
  const taken = Array.from({ length: 20 }, (_, n) => threads[n % 3]?.take());
  assert.equal(taken.filter((one) => one === true).length, first.max);
  assert.equal(first.refusals(), 20 - first.max);
  first.giveBack();
  assert.equal(second.take(), true);
  assert.equal(second.take(), false);
  endBudgetOf(memory, 1);
  assert.equal(first.take(), true, 'those of thread 1 ended with it');
  assert.equal(processBudget(memory, 0).checks.take(), true, 'checks have processes of their own');
});

test('several sandboxes never run more processes than the budget has, and every call is run', async () => {
  const memory = createBudgetMemory(gibibyte + 400 * mebibyte);
  const { calls, checks } = processesByMemory(gibibyte + 400 * mebibyte);
  assert.deepEqual({ calls, checks }, { calls: 3, checks: 1 });
  const sandboxes = [0, 1, 2].map((thread) =>
    openSandbox(isolation, { processes: processBudget(memory, thread) }),
  );
  const processes = () => sandboxes.reduce((sum, one) => sum + one.state().processes, 0);
  let most = 0;
  try {
    // Each leaves a process that does nothing, which the next ones need.
    for (let round = 0; round < 4; round++) {
      const results = sandboxes.map((sandbox, n) =>
        sandbox.run(callOf(moduleOf('return 1'), { tenant: `tenant ${round} ${n}` })),
      );
      for (const result of results) {
        const ended = await result;
        most = Math.max(most, processes());
        assert.equal(endOf(ended), 'returned');
      }
    }
    assert.ok(most <= calls, `${most} processes`);
  } finally {
    await Promise.all(sandboxes.map((one) => one.close()));
  }
  assert.deepEqual(descendants(), []);
  const share = processBudget(memory, 0).calls;
  assert.deepEqual(
    Array.from({ length: calls + 1 }, () => share.take()),
    [...Array.from({ length: calls }, () => true), false],
    'all were given back',
  );
});
