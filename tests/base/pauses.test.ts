/** Pauses between failures in a row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGrowingPause } from '../../src/base/pauses.ts';

test('each pause is twice as long as the one before, up to a limit, until something succeeds', () => {
  const pause = createGrowingPause({ firstMs: 1_000, maxMs: 5_000 });
  const next = () => pause.next();
  assert.deepEqual([next(), next(), next(), next(), next()], [1_000, 2_000, 4_000, 5_000, 5_000]);
  pause.reset();
  assert.deepEqual([next(), next()], [1_000, 2_000]);
});
