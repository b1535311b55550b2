/** Nonces of sessions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { base58 } from '@scure/base';
import { pooledRandom } from '../../src/base/random.ts';
import { hashSessionNonce, newSessionNonce } from '../../src/keys/session-nonce.ts';

test('a nonce has 22 characters, encodes 16 random bytes, and never repeats', () => {
  const random = pooledRandom();
  const nonces = Array.from({ length: 2000 }, () => newSessionNonce(random));
  assert.equal(new Set(nonces).size, nonces.length);
  for (const nonce of nonces) {
    assert.equal(nonce.length, 22);
    assert.equal(base58.decode(nonce).length, 16);
  }
});

test('bytes that would give a shorter nonce are drawn again', () => {
  const draws = [Buffer.alloc(16), Buffer.alloc(16, 0xff)];
  const nonce = newSessionNonce(() => draws.shift() ?? assert.fail('a third draw'));
  assert.equal(nonce, base58.encode(Buffer.alloc(16, 0xff)));
});

test('only a hash of a nonce is stored', () => {
  assert.match(hashSessionNonce('a'), /^[A-Za-z0-9_-]{43}$/);
  assert.notEqual(hashSessionNonce('a'), hashSessionNonce('b'));
});
