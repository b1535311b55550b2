/** API keys: 256 bits without bias, and a checksum that rejects typos without a look-up. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';
import { pooledRandom, type Random } from '../../src/base/random.ts';
import { apiKeyPlausible, hashApiKey, newApiKey } from '../../src/keys/api-key.ts';

const random = pooledRandom();
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const envs = ['test', 'prod'] as const;
const kinds = ['pub', 'pvt', 'mgt', 'ses'] as const;

/** The same bytes in every run: SHAKE128 of a seed. */
function seeded(seed: string, length: number): Random {
  const stream = createHash('shake128', { outputLength: length }).update(seed).digest();
  let used = 0;
  return (count) => {
    assert(used + count <= stream.length, 'the stream is long enough');
    used += count;
    return stream.subarray(used - count, used);
  };
}

suite('a new API key', () => {
  test('has the documented form and is plausible, for every environment and kind', () => {
    for (const env of envs) {
      for (const kind of kinds) {
        const key = newApiKey({ env, kind, random });
        assert.match(key, new RegExp(`^key_${env}_${kind}_[0-9A-Za-z]{49}$`));
        assert.equal(apiKeyPlausible(key), true);
      }
    }
  });

  test('stays the same for the same randomness from release to release', () => {
    assert.equal(
      newApiKey({ env: 'test', kind: 'pvt', random: seeded('pin', 400) }),
      'key_test_pvt_6jiYexqKpiIvVEBxw6xN1qPIwN2Z6XLYimU0XCZWyoQ4QOFNg',
    );
  });

  test('is never given twice', () => {
    const keys = Array.from({ length: 5000 }, () =>
      newApiKey({ env: 'prod', kind: 'ses', random }),
    );
    assert.equal(new Set(keys).size, keys.length);
  });

  test('has every character equally often in its random part', () => {
    const stream = seeded('uniform', 2_000_000);
    const counts = new Map<string, number>();
    const keys = 10_000;
    for (let count = 0; count < keys; count++) {
      const key = newApiKey({ env: 'test', kind: 'pub', random: stream });
      for (const character of key.slice(13, 56)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    const expected = (keys * 43) / alphabet.length;
    const chiSquare = [...alphabet].reduce(
      (sum, character) => sum + ((counts.get(character) ?? 0) - expected) ** 2 / expected,
      0,
    );
    // 61 degrees of freedom: above 100 has a probability of 0.001. Bytes modulo 62 would give 4000.
    assert(chiSquare < 100, `chi-square is ${chiSquare}`);
  });
});

suite('a mistyped API key', () => {
  const keys = Array.from({ length: 5 }, () => newApiKey({ env: 'test', kind: 'pvt', random }));

  test('is rejected for every single wrong character', () => {
    for (const key of keys) {
      for (let index = 0; index < key.length; index++) {
        for (const character of `${alphabet}_.- é`) {
          if (character === key[index]) continue;
          const typo = key.slice(0, index) + character + key.slice(index + 1);
          // A key whose first four characters are not "key_" is judged as an operator's own.
          const expected = index < 4 && /^[A-Za-z0-9_.]+$/.test(typo);
          assert.equal(apiKeyPlausible(typo), expected, typo);
        }
      }
    }
  });

  test('is rejected for a missing, doubled or swapped character', () => {
    for (const key of keys) {
      for (let index = 4; index < key.length - 1; index++) {
        const [one, two] = [key.charAt(index), key.charAt(index + 1)];
        const start = key.slice(0, index);
        assert.equal(apiKeyPlausible(start + key.slice(index + 1)), false);
        assert.equal(apiKeyPlausible(start + one + key.slice(index)), false);
        if (one !== two)
          assert.equal(apiKeyPlausible(start + two + one + key.slice(index + 2)), false);
      }
    }
  });

  test('is rejected when it is another environment or kind than it was made for', () => {
    for (const key of keys) {
      assert.equal(apiKeyPlausible(key.replace('_test_', '_prod_')), false);
      assert.equal(apiKeyPlausible(key.replace('_pvt_', '_mgt_')), false);
    }
  });

  test('is rejected with anything around it', () => {
    for (const key of keys) {
      for (const text of [` ${key}`, `${key}\n`, `${key}\0`, `${key}${key}`, '', 'key_']) {
        assert.equal(apiKeyPlausible(text), false);
      }
    }
  });
});

test("an operator's own key has 32 to 200 plain characters and does not begin with key_", () => {
  for (const length of [32, 200])
    assert.equal(apiKeyPlausible('aZ09_.'.repeat(40).slice(0, length)), true);
  for (const length of [0, 31, 201]) assert.equal(apiKeyPlausible('a'.repeat(length)), false);
  for (const character of '-+/ \n:é')
    assert.equal(apiKeyPlausible('a'.repeat(40) + character), false);
  assert.equal(apiKeyPlausible(`key_${'a'.repeat(40)}`), false);
});

test('the hash of a key is its SHA-256', () => {
  const expected = createHash('sha256').update('key_test_pvt_x').digest('base64url');
  assert.equal(hashApiKey('key_test_pvt_x'), expected);
});
