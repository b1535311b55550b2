/** Processes with code of tenants, of all pools together, fit into the memory that the vault may use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openCode } from '../../src/reactors/code/engine.ts';
import { openSandbox } from '../../src/reactors/sandbox/open.ts';
import {
  createBudgetMemory,
  endBudgetOf,
  processBudget,
  processesByMemory,
} from '../../src/reactors/sandbox/process-budget.ts';
import type { Sandbox, SandboxResult } from '../../src/reactors/sandbox/sandbox.ts';
import { callOf, endOf, moduleOf } from '../support/code-calls.ts';
import { nextLook } from '../support/poll.ts';
import { descendants } from '../support/running.ts';
import { isolation } from '../support/sandboxes.ts';

const mebibyte = 2 ** 20;
const gibibyte = 1024 * mebibyte;

const processesOf = (sandboxes: readonly Sandbox[]) =>
  sandboxes.reduce((sum, one) => sum + one.state().processes, 0);

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
  const taken = Array.from({ length: 20 }, (_, n) => threads[n % 3]?.take(`tenant ${n}`));
  assert.equal(taken.filter((one) => one !== undefined).length, first.max);
  assert.equal(first.refusals(), 20 - first.max);
  taken[0]?.giveBack();
  assert.equal(second.take('one more'), undefined, 'it is for the one that was refused first');
  assert.ok(second.take(`tenant ${first.max}`));
  assert.equal(second.take('one more'), undefined);
  endBudgetOf(memory, 1);
  assert.ok(first.take('one more'), 'those of thread 1 ended with it');
  assert.ok(processBudget(memory, 0).checks.take('one more'), 'checks have processes of their own');
});

test('several sandboxes never run more processes than the budget has, and every call is run', async () => {
  const memory = createBudgetMemory(gibibyte + 400 * mebibyte);
  const { calls, checks } = processesByMemory(gibibyte + 400 * mebibyte);
  assert.deepEqual({ calls, checks }, { calls: 3, checks: 1 });
  const sandboxes = [0, 1, 2].map((thread) =>
    openSandbox(isolation, { processes: processBudget(memory, thread) }),
  );
  const processes = () => processesOf(sandboxes);
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
    Array.from({ length: calls + 1 }, (_, n) => share.take(`tenant ${n}`) !== undefined),
    [...Array.from({ length: calls }, () => true), false],
    'all were given back',
  );
});

test('no tenant takes the last processes of all threads: they are for tenants that have none', () => {
  const memory = createBudgetMemory(2 * gibibyte);
  const threads = [0, 1, 2, 3].map((thread) => processBudget(memory, thread).calls);
  const [first] = threads;
  assert.ok(first);
  const taken = Array.from({ length: 20 }, (_, n) => threads[n % 4]?.take('a tenant'));
  assert.equal(taken.filter((one) => one !== undefined).length, first.max - 1);
  assert.equal(first.refusalsOfFirst(), 0);
  assert.ok(first.take('another'));
  assert.equal(first.take('a third'), undefined);
  assert.equal(first.refusalsOfFirst(), 1);
});

test('a tenant that waits on every thread, and in the background, keeps no other from its code', async () => {
  const memory = createBudgetMemory(2 * gibibyte);
  const shared = { isOn: true, modules: new Map(), isolation, log: { warn: () => undefined } };
  const engines = [1, 2, 3, 4].map((thread) =>
    openCode({ ...shared, processes: processBudget(memory, thread), threads: 4 }),
  );
  const background = openCode({
    ...shared,
    processes: processBudget(memory, 0),
    isBackground: true,
  });
  const all = [background, ...engines].flatMap(({ sandbox }) => sandbox ?? []);
  const stopping = new AbortController();
  const endless = callOf(moduleOf('await new Promise(() => setInterval(() => {}, 1000))'), {
    signal: stopping.signal,
  });
  const waiting = [...all, ...all].map((sandbox) => sandbox.run(endless));
  try {
    const { max } = processBudget(memory, 0).calls;
    while (processesOf(all) < max - 1) await nextLook();
    for (const sandbox of all) {
      const other = await sandbox.run(callOf(moduleOf('return 1'), { tenant: 'another' }));
      assert.equal(endOf(other), 'returned');
    }
  } finally {
    stopping.abort();
    await Promise.all(waiting);
    await Promise.all(all.map((one) => one.close()));
  }
});

test('a tenant that calls without a pause on one thread keeps no other thread from its code', async () => {
  const memory = createBudgetMemory(gibibyte);
  const [busy, other] = [1, 2].map((thread) =>
    openSandbox(isolation, { processes: processBudget(memory, thread) }),
  );
  assert.ok(busy && other);
  let isOver = false;
  const calls = [0, 1].map(async () => {
    while (!isOver) await busy.run(callOf(moduleOf('return 1')));
  });
  try {
    while (busy.state().processes < 1) await nextLook();
    for (let round = 0; round < 2; round++) {
      const result: SandboxResult = await other.run(
        callOf(moduleOf('return 1'), { tenant: 'another' }),
      );
      assert.equal(endOf(result), 'returned');
    }
  } finally {
    isOver = true;
    await Promise.all(calls);
    await Promise.all([busy.close(), other.close()]);
  }
});
