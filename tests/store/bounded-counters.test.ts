/** Counters of keys that attackers choose: their number is bounded, and those counted most are forgotten last. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { BoundedCounters } from '../../src/store/bounded-counters.ts';

const windowMs = 60_000;

function countersOf(more: { readonly requests?: number; readonly keysMax?: number } = {}) {
  const clock = { now: 1_000_000 };
  const limit = { requests: 3, windowMs, keysMax: 10, ...more };
  return { clock, counters: new BoundedCounters(limit, () => clock.now) };
}

test('the first requests of a window are allowed, and one refusal is the first', async () => {
  const { counters } = countersOf();
  const states = [];
  for (let n = 0; n < 5; n++) states.push(await counters.count('key'));
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

test('requests that are counted together are granted up to the limit', async () => {
  const { counters } = countersOf();
  await counters.count('key');
  const { allowed, granted, isFirstRefusal } = await counters.count('key', 5);
  assert.deepEqual([allowed, granted, isFirstRefusal], [false, 2, true]);
});

test('a window begins with the first request and is not moved by later ones', async () => {
  const { clock, counters } = countersOf();
  await counters.count('key', 3);
  clock.now += windowMs - 1;
  const { allowed, resetMs } = await counters.count('key');
  assert.deepEqual([allowed, resetMs], [false, 1]);
  clock.now += 1;
  assert.equal((await counters.count('key')).allowed, true);
});

test('a flood of other keys takes no more room and forgets no key that was counted more often', async () => {
  const { counters } = countersOf({ keysMax: 100 });
  await counters.count('guessed', 3);
  for (let n = 0; n < 10_000; n++) await counters.count(`other ${n}`);
  assert.equal(counters.size, 100);
  assert.equal((await counters.count('guessed')).allowed, false);
});

test('to forget a key that was counted n times, all others have to be counted as often', async () => {
  const keysMax = 50;
  const { counters } = countersOf({ keysMax });
  await counters.count('guessed', 2);
  let others = 0;
  for (let n = 0; n < keysMax - 1; n++)
    others += 2 * (await counters.count(`other ${n}`, 2)).granted;
  assert.ok(others >= 2 * (keysMax - 1));
  assert.equal((await counters.count('guessed', 1)).remaining, 0, 'still known');
});

test('what has ended makes room first', async () => {
  const { clock, counters } = countersOf({ keysMax: 10 });
  for (let n = 0; n < 9; n++) await counters.count(`old ${n}`, 4);
  clock.now += windowMs;
  await counters.count('guessed');
  for (let n = 0; n < 5; n++) await counters.count(`new ${n}`);
  assert.equal((await counters.count('guessed')).remaining, 1);
});
