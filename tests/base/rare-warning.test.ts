/** A warning that would repeat itself: once a minute, and nothing that happened is left out of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../src/base/clock.ts';
import { createRareWarning } from '../../src/base/telemetry/rare-warning.ts';
import { createStillClock, recorder, type TestVault } from '../support/vault.ts';

test('is written at the first time and then once a minute, with the sum of what came in between', () => {
  const clock = createStillClock();
  const logged: TestVault['logged'] = [];
  const warn = createRareWarning('it happened', { clock, log: recorder(logged) });
  const counts = () => logged.map(({ fields }) => fields?.count);
  warn(1);
  warn(2);
  clock.advance(minute - 1);
  warn(3);
  assert.deepEqual(counts(), [1]);
  clock.advance(1);
  warn(4);
  assert.deepEqual(counts(), [1, 9]);
  clock.advance(minute);
  warn(1);
  assert.deepEqual(counts(), [1, 9, 1]);
});
