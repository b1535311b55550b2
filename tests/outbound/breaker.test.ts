/** The circuit breaker, by a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Instant } from '../../src/base/clock.ts';
import { createBreaker, failuresMax, pauseMs } from '../../src/outbound/breaker.ts';

function fallen() {
  const time = { now: 0 };
  const breaker = createBreaker({ now: () => time.now as Instant });
  for (let failures = 0; failures < failuresMax; failures += 1) {
    assert.equal(breaker.admit(), 0);
    breaker.failed();
  }
  return { breaker, time };
}

test('after failures in a row nobody is admitted until the pause is over, then one is', () => {
  const { breaker, time } = fallen();
  assert.equal(breaker.admit(), pauseMs);
  time.now = pauseMs - 1;
  assert.equal(breaker.admit(), 1);
  time.now = pauseMs;
  assert.equal(breaker.admit(), 0);
  assert.equal(breaker.admit(), pauseMs);
});

test('the one that succeeds lets everybody in, the one that fails begins another pause', () => {
  const { breaker, time } = fallen();
  time.now = pauseMs;
  assert.equal(breaker.admit(), 0);
  breaker.failed();
  assert.equal(breaker.admit(), pauseMs);
  time.now = 2 * pauseMs;
  assert.equal(breaker.admit(), 0);
  breaker.succeeded();
  assert.equal(breaker.admit(), 0);
  assert.equal(breaker.admit(), 0);
});

test('a success between failures starts the count again', () => {
  const { breaker, time } = fallen();
  time.now = pauseMs;
  breaker.succeeded();
  for (let failures = 1; failures < failuresMax; failures += 1) breaker.failed();
  assert.equal(breaker.admit(), 0);
  breaker.failed();
  assert.equal(breaker.admit(), pauseMs);
});
