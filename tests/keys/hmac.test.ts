/** HMAC-SHA-256 is that of RFC 2104, whatever was hashed before. */
import assert from 'node:assert/strict';
import { createHmac, createSecretKey } from 'node:crypto';
import test from 'node:test';
import fc from 'fast-check';
import { hmacSha256 } from '../../src/keys/digest.ts';

/** RFC 4231, the cases whose key is not longer than a block and whose digest is not cut. */
const vectors = [
  {
    key: '0b'.repeat(20),
    message: Buffer.from('Hi There'),
    digest: 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  },
  {
    key: Buffer.from('Jefe').toString('hex'),
    message: Buffer.from('what do ya want for nothing?'),
    digest: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  },
  {
    key: 'aa'.repeat(20),
    message: Buffer.alloc(50, 0xdd),
    digest: '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
  },
];

test('the vectors of RFC 4231', () => {
  for (const { key, message, digest } of vectors) {
    const secret = createSecretKey(Buffer.from(key, 'hex'));
    assert.equal(hmacSha256(secret, message).toString('hex'), digest);
  }
});

test('equal to the system for any key and any messages, one after another under one key', () => {
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 64 });
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(bytes, messages, (key, all) => {
      const secret = createSecretKey(key);
      const made = all.map((message) => hmacSha256(secret, message));
      const expected = all.map((message) => createHmac('sha256', secret).update(message).digest());
      assert.deepEqual(made, expected);
    }),
  );
});

test('a key that is longer than a block is refused', () => {
  const key = createSecretKey(Buffer.alloc(65));
  assert.throws(() => hmacSha256(key, Buffer.of(1)), { code: 'ERR_ASSERTION' });
});
