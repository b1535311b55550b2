/** When failed deliveries are tried again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, type Instant, minute, second } from '../../src/base/clock.ts';
import {
  jitterShareMax,
  nextAttemptAt,
  retryAfterMsMax,
  retryAfterMsOf,
} from '../../src/webhooks/deliveries/schedule.ts';

const now = Date.UTC(2030, 0, 1) as Instant;
const failed = { now, retryAfterMs: undefined, random: 0 };

test('after 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, and then no more', () => {
  const waited = Array.from({ length: 11 }, (_, index) => {
    const at = nextAttemptAt({ ...failed, attempts: index + 1 });
    return at === undefined ? undefined : at - now;
  });
  const hours = [2, 5, 10, 14, 20, 24].map((count) => count * hour);
  const delays = [5 * second, 5 * minute, 30 * minute, ...hours];
  assert.deepEqual(waited, [...delays, undefined, undefined]);
});

test('what failed together comes back apart, never sooner than the schedule says', () => {
  const at = (random: number) => (nextAttemptAt({ ...failed, attempts: 2, random }) ?? 0) - now;
  assert.equal(at(0), 5 * minute);
  assert.ok(at(0.5) > at(0) && at(0.999) > at(0.5));
  assert.ok(at(0.999) <= 5 * minute * (1 + jitterShareMax));
});

test('Retry-After delays an attempt, at most by a day, and never brings it forward', () => {
  const after = (retryAfterMs: number) =>
    (nextAttemptAt({ ...failed, attempts: 1, retryAfterMs }) ?? 0) - now;
  assert.equal(after(0), 5 * second);
  assert.equal(after(5 * second + 1), 5 * second + 1);
  assert.equal(after(retryAfterMsMax), day);
  assert.equal(after(retryAfterMsMax + 1), day);
  assert.equal(nextAttemptAt({ ...failed, attempts: 10, retryAfterMs: 1 }), undefined);
});

test('Retry-After is read in seconds or as a date', () => {
  assert.equal(retryAfterMsOf('120', now), 120 * second);
  assert.equal(retryAfterMsOf('Tue, 01 Jan 2030 00:01:00 GMT', now), minute);
  assert.equal(retryAfterMsOf('Mon, 31 Dec 2029 00:00:00 GMT', now), 0);
  for (const text of [undefined, '', 'soon', '-5', '1e3', '99999999999']) {
    assert.equal(retryAfterMsOf(text, now), undefined, String(text));
  }
});
