/** The cache with an end: age by the clock, a bound, and nothing that was forgotten comes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Instant } from '../../src/base/clock.ts';
import { ExpiringMap } from '../../src/base/expiring-map.ts';

function fixture() {
  let now = 1_000_000;
  const clock = { now: () => now as Instant };
  const map = new ExpiringMap<string, number>({ clock, ageMsMax: 500, entriesMax: 3 });
  const advance = (milliseconds: number) => {
    now += milliseconds;
  };
  return { map, advance };
}

test('an entry is there until its age is reached', () => {
  const { map, advance } = fixture();
  map.set('a', 1);
  advance(499);
  assert.equal(map.get('a'), 1);
  advance(1);
  assert.equal(map.get('a'), undefined);
});

test('a clock that is set back gives no entry a second life', () => {
  const { map, advance } = fixture();
  map.set('a', 1);
  advance(-3_600_000);
  assert.equal(map.get('a'), undefined);
  advance(3_600_000);
  assert.equal(map.get('a'), undefined);
});

test('an entry ages from the moment before it was read', () => {
  const { map, advance } = fixture();
  const reading = map.reading();
  advance(400);
  map.set('a', 1, reading);
  advance(100);
  assert.equal(map.get('a'), undefined);
});

test('what was forgotten while it was read is not kept', () => {
  for (const forget of ['delete', 'clear'] as const) {
    const { map } = fixture();
    const reading = map.reading();
    map[forget]('a');
    map.set('a', 1, reading);
    assert.equal(map.get('a'), undefined, forget);
    map.set('a', 2);
    assert.equal(map.get('a'), 2);
  }
});

test('a full map makes room with its oldest entry, and only for a new one', () => {
  const { map } = fixture();
  for (const [index, key] of ['a', 'b', 'c'].entries()) map.set(key, index);
  map.set('c', 7);
  assert.deepEqual(
    ['a', 'b', 'c'].map((key) => map.get(key)),
    [0, 1, 7],
  );
  map.set('d', 8);
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((key) => map.get(key)),
    [undefined, 1, 7, 8],
  );
});

test('a new epoch forgets all, also what was being read when it began', () => {
  let epoch = 0;
  const clock = { now: () => 0 as Instant };
  const map = new ExpiringMap<string, number>({
    clock,
    ageMsMax: 500,
    entriesMax: 3,
    epoch: () => epoch,
  });
  map.set('a', 1);
  assert.equal(map.get('a'), 1);
  const reading = map.reading();
  epoch += 1;
  map.set('b', 2, reading);
  assert.deepEqual([map.get('a'), map.get('b')], [undefined, undefined]);
  map.set('b', 2);
  assert.equal(map.get('b'), 2);
});
