/** Pauses between failures in a row, and between the steps of long work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGrowingPause, createPause } from '../../src/base/pauses.ts';
import { createProcessorTime } from '../../src/base/processor-time.ts';

test('each pause is twice as long as the one before, up to a limit, until something succeeds', () => {
  const pause = createGrowingPause({ firstMs: 1_000, maxMs: 5_000 });
  const next = () => pause.next();
  assert.deepEqual([next(), next(), next(), next(), next()], [1_000, 2_000, 4_000, 5_000, 5_000]);
  pause.reset();
  assert.deepEqual([next(), next()], [1_000, 2_000]);
});

const busy = (ms: number) => {
  for (const begun = performance.now(); performance.now() - begun < ms; );
};

test('the step of a request is charged before it ends, and the next one waits for its turn', async () => {
  const time = createProcessorTime();
  const { promise: turn, resolve: begin } = Promise.withResolvers<void>();
  let charged = 0;
  let waits = 0;
  const ended = Promise.withResolvers<void>();
  const payer = {
    charge: (ms: number) => {
      charged += ms;
    },
    isAlone: false,
    nextStep: () => {
      waits += 1;
      return turn;
    },
  };
  time.run(payer, () => {
    const pause = createPause();
    busy(12);
    void (async () => {
      await pause();
      ended.resolve();
    })();
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(waits, 1);
  assert.ok(charged > 0);
  const state = await Promise.race([ended.promise, Promise.resolve('it waits')]);
  assert.equal(state, 'it waits');
  begin();
  await ended.promise;
});

test('of the long work of the vault itself, one step is done in each turn of the event loop', async () => {
  let steps = 0;
  const works = Array.from({ length: 10 }, async () => {
    const pause = createPause();
    for (let step = 0; step < 2; step += 1) {
      busy(6);
      await pause();
      steps += 1;
    }
  });
  let most = 0;
  for (let before = steps; steps < 20; before = steps) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, steps - before);
  }
  await Promise.all(works);
  assert.ok(most <= 2, `${most} steps in a turn`);
});
