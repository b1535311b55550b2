/** Digests: equal values meet under one key, and nobody without it can try candidates. */
import assert from 'node:assert/strict';
import { createHash, createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { suite, test } from 'node:test';
import { base58 } from '@scure/base';
import fc from 'fast-check';
import { luhnValid } from '../../src/base/checks.ts';
import { fingerprintOf, searchTermOf, sha256 } from '../../src/keys/digest.ts';
import { encodeParts } from '../../src/keys/parts.ts';

const key = createSecretKey(Buffer.alloc(32, 7));

suite('a fingerprint', () => {
  test('is base58 of HMAC-SHA-256 over the documented bytes', () => {
    const bytes = Buffer.concat([
      Buffer.from([0, 0, 0, 8]),
      Buffer.from('card', 'utf16le'),
      Buffer.from([0, 0, 0, 32]),
      Buffer.from('4242424242424242', 'utf16le'),
    ]);
    const expected = createHmac('sha256', Buffer.alloc(32, 7)).update(bytes).digest();
    const fingerprint = fingerprintOf(key, 'card', '4242424242424242');
    assert.deepEqual(Buffer.from(base58.decode(fingerprint)), expected);
    assert.match(fingerprint, /^[1-9A-HJ-NP-Za-km-z]{32,44}$/);
  });

  test('stays the same from release to release', () => {
    assert.equal(
      fingerprintOf(key, 'card', '4242424242424242'),
      'EvSggR3L5VtxpdxW7mCaPoygP1q1Voz2AVoRXES8LTvr',
    );
  });

  test('differs by key, type and value, and by where one ends and the other begins', () => {
    const other = createSecretKey(randomBytes(32));
    const fingerprints = [
      fingerprintOf(key, 'card', '42'),
      fingerprintOf(other, 'card', '42'),
      fingerprintOf(key, 'bank', '42'),
      fingerprintOf(key, 'card', '43'),
      fingerprintOf(key, 'card4', '2'),
      fingerprintOf(key, 'car', 'd42'),
      fingerprintOf(key, '', 'card42'),
    ];
    assert.equal(new Set(fingerprints).size, fingerprints.length);
  });

  test('differs for values that UTF-8 would make equal', () => {
    const values = ['\ud800', '\ud801', '\ufffd'];
    assert.equal(new Set(values.map((value) => fingerprintOf(key, 'token', value))).size, 3);
  });

  test('is not found by a dictionary of every card with its first and last digits', () => {
    const number = '4242424242424242';
    const secret = createSecretKey(randomBytes(32));
    const guessed = createSecretKey(randomBytes(32));
    const found = fingerprintOf(secret, 'card', number);
    const term = Buffer.from(searchTermOf(secret, 'data', number)).toString('hex');
    let candidates = 0;
    let hits = 0;
    for (let middle = 0; middle < 1_000_000; middle++) {
      const candidate = `424242${String(middle).padStart(6, '0')}4242`;
      if (!luhnValid(candidate)) continue;
      candidates += 1;
      const plain = createHash('sha256')
        .update(encodeParts(['card', candidate]))
        .digest();
      if (base58.encode(plain) === found) hits += 1;
      if (fingerprintOf(guessed, 'card', candidate) === found) hits += 1;
      if (Buffer.from(searchTermOf(guessed, 'data', candidate)).toString('hex') === term) hits += 1;
    }
    assert.equal(candidates, 100_000);
    assert.equal(hits, 0);
    assert.equal(fingerprintOf(secret, 'card', number), found, 'with the key it is found');
  });
});

suite('a search term', () => {
  test('is the first half of HMAC-SHA-256 over field and value, in memory of its own', () => {
    const term = searchTermOf(key, 'data', 'x');
    const whole = createHmac('sha256', key)
      .update(encodeParts(['data', 'x']))
      .digest();
    assert.deepEqual(Buffer.from(term), whole.subarray(0, 16));
    assert.equal(term.buffer.byteLength, 16);
  });

  test('is equal for equal fields and values only', () => {
    const pair = fc.tuple(fc.string(), fc.string());
    const check = fc.property(pair, pair, (one, two) => {
      const same = one[0] === two[0] && one[1] === two[1];
      const terms = [one, two].map(([field, value]) =>
        Buffer.from(searchTermOf(key, field, value)).toString('hex'),
      );
      assert.equal(terms[0] === terms[1], same);
    });
    fc.assert(check, {
      numRuns: 1000,
      examples: [
        [
          ['ab', 'c'],
          ['a', 'bc'],
        ],
        [
          ['a', 'b'],
          ['a', 'b'],
        ],
      ],
    });
  });
});

test('sha256 gives the digest that FIPS 180 publishes for "abc"', () => {
  const expected = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  assert.equal(sha256('abc').toString('hex'), expected);
});
