/** XAES-256-GCM: the vectors its specification publishes, and what it refuses. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { AeadKey, decrypt, encrypt, open, seal } from '../../src/keys/aead.ts';

const vectors = JSON.parse(
  readFileSync(new URL('../vectors/xaes-256-gcm.json', import.meta.url), 'utf8'),
);

suite('XAES-256-GCM', () => {
  test('gives the published ciphertext, and the plaintext back', () => {
    for (const vector of vectors.messages) {
      const key = new AeadKey(Buffer.from(vector.key, 'hex'));
      const nonce = Buffer.from(vector.nonce);
      const plaintext = Buffer.from(vector.plaintext);
      const associatedData = Buffer.from(vector.associatedData);
      const ciphertext = encrypt(key, { nonce, plaintext, associatedData });
      assert.equal(ciphertext.toString('hex'), vector.ciphertext);
      assert.deepEqual(decrypt(key, { nonce, ciphertext, associatedData }), plaintext);
    }
  });

  test('gives the published digest over 10 000 accumulated random messages', () => {
    const { iterations, digest } = vectors.accumulated;
    const bytesMax = iterations * (32 + 24 + 1 + 255 + 1 + 255);
    const stream = createHash('shake128', { outputLength: bytesMax }).digest();
    let used = 0;
    const next = (length: number) => {
      used += length;
      return stream.subarray(used - length, used);
    };
    const nextVariable = () => next(next(1).readUInt8());
    const sum = createHash('shake128', { outputLength: 32 });
    for (let iteration = 0; iteration < iterations; iteration++) {
      const key = new AeadKey(next(32));
      const nonce = next(24);
      const plaintext = nextVariable();
      const associatedData = nextVariable();
      const ciphertext = encrypt(key, { nonce, plaintext, associatedData });
      assert.deepEqual(decrypt(key, { nonce, ciphertext, associatedData }), plaintext);
      sum.update(ciphertext);
    }
    assert.equal(sum.digest('hex'), digest);
  });

  test('one key used for many messages gives what a new key would', () => {
    const bytes = randomBytes(32);
    const kept = new AeadKey(bytes);
    const associatedData = Buffer.from('place');
    for (let count = 0; count < 200; count++) {
      const message = { nonce: randomBytes(24), plaintext: randomBytes(count), associatedData };
      assert.deepEqual(seal(kept, message), seal(new AeadKey(bytes), message));
    }
  });

  test('every byte of the nonce matters', () => {
    const key = new AeadKey(randomBytes(32));
    const associatedData = Buffer.from('place');
    const nonce = randomBytes(24);
    const ciphertext = seal(key, { nonce, plaintext: Buffer.from('text'), associatedData });
    for (let index = 0; index < nonce.length; index++) {
      const other = Buffer.from(nonce);
      other.writeUInt8(other.readUInt8(index) ^ 1, index);
      assert.equal(open(key, { nonce: other, ciphertext, associatedData }), undefined);
    }
  });

  test('a message shorter than a tag does not open', () => {
    const key = new AeadKey(randomBytes(32));
    const nonce = randomBytes(24);
    const associatedData = Buffer.from('place');
    const whole = seal(key, { nonce, plaintext: Buffer.alloc(0), associatedData });
    for (let length = 0; length < whole.length; length++) {
      const ciphertext = whole.subarray(0, length);
      assert.equal(open(key, { nonce, ciphertext, associatedData }), undefined);
    }
  });

  test('refuses to seal or open without associated data, and keys and nonces of other sizes', () => {
    const key = new AeadKey(randomBytes(32));
    const nonce = randomBytes(24);
    const text = randomBytes(32);
    const nothing = Buffer.alloc(0);
    const something = Buffer.from('place');
    const message = { plaintext: text, ciphertext: text };
    const refused = { name: 'AssertionError' };
    assert.throws(() => seal(key, { ...message, nonce, associatedData: nothing }), refused);
    assert.throws(() => open(key, { ...message, nonce, associatedData: nothing }), refused);
    for (const length of [0, 12, 23, 25]) {
      const wrong = { ...message, nonce: Buffer.alloc(length), associatedData: something };
      assert.throws(() => seal(key, wrong), refused);
      assert.throws(() => open(key, wrong), refused);
    }
    for (const length of [0, 16, 31, 33])
      assert.throws(() => new AeadKey(Buffer.alloc(length)), refused);
  });

  test('a key prints and serializes as nothing', () => {
    const key = new AeadKey(randomBytes(32));
    assert.equal(inspect(key, { showHidden: true, depth: 9, customInspect: false }), 'AeadKey {}');
    assert.equal(JSON.stringify(key), '{}');
  });
});
