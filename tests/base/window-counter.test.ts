/** Counters of keys that attackers choose: their number is bounded, and those counted most are forgotten last. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { exactMax, WindowCounter, type WindowLimit } from '../../src/base/window-counter.ts';

const windowMs = 60_000;

function countersOf(more: Partial<WindowLimit> = {}) {
  const clock = { now: 1_000_000 };
  const limit = { requests: 3, windowMs, blockMs: 0, keysMax: 10, ...more };
  return { clock, counters: new WindowCounter(limit, () => clock.now) };
}

test('the first requests of a window are allowed, and one refusal is the first', () => {
  const { counters } = countersOf();
  const states = [];
  for (let n = 0; n < 5; n++) states.push(counters.count('key'));
  assert.deepEqual(
    states.map(({ allowed, granted, remaining, isFirstRefusal }) => [
      allowed,
      granted,
      remaining,
      isFirstRefusal,
    ]),
    [
      [true, 1, 2, false],
      [true, 1, 1, false],
      [true, 1, 0, false],
      [false, 0, 0, true],
      [false, 0, 0, false],
    ],
  );
});

test('requests that are counted together are granted up to the limit', () => {
  const { counters } = countersOf();
  counters.count('key');
  const { allowed, granted, isFirstRefusal } = counters.count('key', 5);
  assert.deepEqual([allowed, granted, isFirstRefusal], [false, 2, true]);
});

test('a window begins with the first request and is not moved by later ones', () => {
  const { clock, counters } = countersOf();
  counters.count('key', 3);
  clock.now += windowMs - 1;
  const { allowed, resetMs } = counters.count('key');
  assert.deepEqual([allowed, resetMs], [false, 1]);
  clock.now += 1;
  assert.equal(counters.count('key').allowed, true);
});

test('a flood of other keys takes no more room and forgets no key that was counted more often', () => {
  const { counters } = countersOf({ keysMax: 100 });
  counters.count('guessed', 3);
  for (let n = 0; n < 10_000; n++) counters.count(`other ${n}`);
  assert.equal(counters.size, 100);
  assert.equal(counters.count('guessed').allowed, false);
});

test('to forget a key that was counted n times, all others have to be counted as often', () => {
  const keysMax = 50;
  const { counters } = countersOf({ keysMax });
  counters.count('guessed', 2);
  let others = 0;
  for (let n = 0; n < keysMax - 1; n++) others += 2 * counters.count(`other ${n}`, 2).granted;
  assert.ok(others >= 2 * (keysMax - 1));
  assert.equal(counters.count('guessed', 1).remaining, 0, 'still known');
});

test('what has ended makes room first', () => {
  const { clock, counters } = countersOf({ keysMax: 10 });
  for (let n = 0; n < 9; n++) counters.count(`old ${n}`, 4);
  clock.now += windowMs;
  counters.count('guessed');
  for (let n = 0; n < 5; n++) counters.count(`new ${n}`);
  assert.equal(counters.count('guessed').remaining, 1);
});

test('a block begins with the first refusal, is not moved by later ones, and ends the window', () => {
  const { clock, counters } = countersOf({ blockMs: 5 * windowMs });
  counters.count('key', 3);
  assert.equal(counters.count('key').resetMs, 5 * windowMs);
  clock.now += 5 * windowMs - 1;
  const { allowed, resetMs } = counters.count('key');
  assert.deepEqual([allowed, resetMs], [false, 1]);
  clock.now += 1;
  assert.equal(counters.count('key', 3).allowed, true);
});

test('peeking counts nothing', () => {
  const { counters } = countersOf();
  counters.count('key', 3);
  assert.equal(counters.peek('key').allowed, false);
  assert.equal(counters.peek('other').remaining, 2);
  assert.deepEqual([counters.size, counters.count('key').isFirstRefusal], [1, true]);
});

test('a clock that is set back gives no window a second life', () => {
  const { clock, counters } = countersOf();
  counters.count('key', 4);
  clock.now -= 10 * windowMs;
  assert.equal(counters.count('key').allowed, true);
});

test('of a limit in the millions, to forget a key all others have to be counted half as often', () => {
  const { counters } = countersOf({ requests: 1_000_000_000, keysMax: 50 });
  const often = 1_000 * exactMax;
  counters.count('frequent', often);
  for (let n = 0; n < 10_000; n++) counters.count(`other ${n}`, often / 2);
  assert.equal(counters.count('frequent').remaining, 1_000_000_000 - often - 1);
});

test('keys without room share one counter where none may give way', () => {
  const { clock, counters } = countersOf({ keysMax: 10, sharesOverflow: true });
  for (let n = 0; n < 10; n++) counters.count(`known ${n}`);
  for (let n = 0; n < 3; n++) assert.equal(counters.count(`late ${n}`).remaining, 2 - n);
  assert.equal(counters.count('late 3').allowed, false);
  assert.equal(counters.peek('known 0').remaining, 1);
  clock.now += windowMs;
  assert.equal(counters.count('late 4').remaining, 2);
});
