/** Random bytes: each is handed out once, and stays as it was handed out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pooledRandom } from '../../src/base/random.ts';

/** Three pools of the generator and a length that does not divide one. */
const draws = 2100;
const length = 24;

test('no bytes are handed out twice, nor written over when more are fetched', () => {
  const random = pooledRandom();
  const asGiven: string[] = [];
  const given = Array.from({ length: draws }, (_, index) => {
    const bytes = random(length);
    asGiven[index] = bytes.toString('hex');
    return bytes;
  });
  assert.equal(new Set(asGiven).size, draws);
  assert.deepEqual(
    given.map((bytes) => bytes.toString('hex')),
    asGiven,
  );
});

test('two generators do not give the same bytes, and one gives more than a pool holds', () => {
  assert.notDeepEqual(pooledRandom()(length), pooledRandom()(length));
  const large = pooledRandom()(100_000);
  assert.equal(large.length, 100_000);
  assert.ok(large.subarray(-length).some((byte) => byte !== 0));
});
