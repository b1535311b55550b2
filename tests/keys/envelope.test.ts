/** Sealed values: they open in their own place, whole, or not at all. */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { AeadKey, decrypt } from '../../src/keys/aead.ts';
import {
  type Binding,
  keyVersionOf,
  openingKeys,
  openText,
  sealedOverheadBytes,
  sealText,
  type VersionedKeys,
} from '../../src/keys/envelope.ts';
import { testGrant } from '../support/openings.ts';

const random = pooledRandom();
const binding: Binding = { tenant: 'tenant-a', id: 'token-1', field: 'data' };
const card = '{"number":"4242424242424242","expiration_month":12,"cvc":"123"}';
const integrity = { name: 'VaultError', code: 'integrity' };

/** Versions 1 up to `activeVersion`, each with a key of its own, the same for the same purpose. */
function keysOf(purpose: string, activeVersion: number): VersionedKeys {
  const keys = Array.from({ length: activeVersion }, (_, index) => {
    return new AeadKey(
      createHmac('sha256', 'test')
        .update(`${purpose} ${index + 1}`)
        .digest(),
    );
  });
  return { purpose, activeVersion, at: (version) => keys[version - 1] };
}

const keys = keysOf('data', 2);

const open = (by: VersionedKeys, place: Binding, sealed: Uint8Array) =>
  openText(openingKeys(by, testGrant), place, sealed);

suite('a sealed value', () => {
  test('opens to the text that was sealed, for every text, binding and way of giving it', () => {
    const text = fc.string({ unit: 'binary' });
    const places = fc.record({ tenant: text, id: text, field: text });
    const check = fc.property(text, places, fc.boolean(), (plaintext, place, asBytes) => {
      const given = asBytes ? Buffer.from(plaintext) : plaintext;
      const sealed = sealText(keys, place, given, random);
      assert.equal(open(keys, place, sealed).reveal(), plaintext);
      assert.equal(sealed.length, Buffer.byteLength(plaintext) + sealedOverheadBytes);
    });
    fc.assert(check, { numRuns: 1000 });
  });

  test('has every flipped bit detected', () => {
    const sealed = sealText(keys, binding, card, random);
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const flipped = Buffer.from(sealed);
      flipped.writeUInt8(flipped.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      assert.throws(() => open(keys, binding, flipped), integrity, `bit ${bit}`);
    }
  });

  test('has every cut and every extension detected', () => {
    const sealed = Buffer.from(sealText(keys, binding, card, random));
    for (let length = 0; length < sealed.length; length++) {
      assert.throws(() => open(keys, binding, sealed.subarray(0, length)), integrity);
      assert.throws(() => open(keys, binding, sealed.subarray(length + 1)), integrity);
    }
    const longer = Buffer.concat([sealed, Buffer.alloc(1)]);
    assert.throws(() => open(keys, binding, longer), integrity);
  });

  test('opens for no other tenant, row or field', () => {
    const sealed = sealText(keys, binding, card, random);
    const elsewhere: Binding[] = [
      { ...binding, tenant: 'tenant-b' },
      { ...binding, id: 'token-2' },
      { ...binding, field: 'metadata' },
      { tenant: 'tenant-at', id: 'oken-1', field: 'data' },
      { tenant: 'tenant-a', id: 'token-1data', field: '' },
      { tenant: 'token-1', id: 'tenant-a', field: 'data' },
    ];
    for (const place of elsewhere) {
      assert.throws(() => open(keys, place, sealed), integrity, inspect(place));
    }
  });

  test('opens in no other place, for random pairs of places', () => {
    const text = fc.string({ maxLength: 3 });
    const place = fc.record({ tenant: text, id: text, field: text });
    const check = fc.property(place, place, (here, there) => {
      fc.pre(JSON.stringify(here) !== JSON.stringify(there));
      const sealed = sealText(keys, here, card, random);
      assert.throws(() => open(keys, there, sealed), integrity);
    });
    fc.assert(check, { numRuns: 1000 });
  });

  test('opens under no other purpose, even when that purpose had the same key', () => {
    const sealed = sealText(keys, binding, card, random);
    assert.throws(() => open(keysOf('reply', 2), binding, sealed), integrity);
    assert.throws(() => open({ ...keys, purpose: 'reply' }, binding, sealed), integrity);
  });

  test('opens under no other key version, even when that version had the same key', () => {
    const sealed = Buffer.from(sealText(keys, binding, card, random));
    const relabelled = Buffer.from(sealed);
    relabelled.writeUInt32BE(1, 1);
    assert.throws(() => open(keys, binding, relabelled), integrity);
    const sameKey = keys.at(2);
    assert.throws(() => open({ ...keys, at: () => sameKey }, binding, relabelled), integrity);
  });

  test('does not open once its key version is gone', () => {
    const sealed = sealText(keys, binding, card, random);
    assert.throws(() => open({ ...keys, at: () => undefined }, binding, sealed), integrity);
  });

  test('still opens after a newer version seals, and shows which version it needs', () => {
    const sealed = sealText(keysOf('data', 1), binding, card, random);
    assert.equal(keyVersionOf(sealed), 1);
    assert.equal(keyVersionOf(sealText(keys, binding, card, random)), 2);
    assert.equal(open(keys, binding, sealed).reveal(), card);
  });

  test('has a fresh nonce each time, so equal texts are not seen to be equal', () => {
    const nonces = new Set<string>();
    for (let count = 0; count < 10_000; count++) {
      const sealed = Buffer.from(sealText(keys, binding, card, random));
      nonces.add(sealed.toString('hex', 5, 29));
    }
    assert.equal(nonces.size, 10_000);
  });

  test('fails with an error that holds nothing of the text, and names the place for the operator', () => {
    const sealed = Buffer.from(sealText(keys, binding, card, random));
    sealed.writeUInt8(sealed.readUInt8(40) ^ 1, 40);
    assert.throws(
      () => open(keys, binding, sealed),
      (error) => {
        assert(error instanceof VaultError);
        assert(!inspect(error, { depth: 9 }).includes('4242'));
        assert.match(error.message, /^data of token-1, tenant tenant-a: /);
        assert.doesNotMatch(error.public, /token-1|tenant-a/);
        return true;
      },
    );
  });

  test('does not open to something that prints', () => {
    const secret = open(keys, binding, sealText(keys, binding, card, random));
    assert.equal(`${inspect(secret)}${JSON.stringify(secret)}${secret}`.includes('4242'), false);
  });
});

suite('the format', () => {
  const nonce = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWX');
  const sealed = Buffer.from(sealText(keys, binding, 'text', () => nonce));

  test('is version, key version, nonce, ciphertext and tag', () => {
    assert.equal(sealed[0], 1);
    assert.equal(sealed.readUInt32BE(1), 2);
    assert.deepEqual(sealed.subarray(5, 29), nonce);
    assert.equal(sealed.length, 29 + 4 + 16);
  });

  test('binds the documented associated data', () => {
    const associatedData = Buffer.from('["strongroom",1,"data","tenant-a","token-1","data",2]');
    const key = keys.at(2);
    assert(key !== undefined);
    const opened = decrypt(key, { nonce, ciphertext: sealed.subarray(29), associatedData });
    assert.equal(opened?.toString(), 'text');
  });

  test('binds any id as JSON writes it', () => {
    const text = fc.string({ unit: 'binary', maxLength: 8 });
    fc.assert(
      fc.property(text, text, text, (tenant, id, field) => {
        const bound = Buffer.from(sealText(keys, { tenant, id, field }, 'text', () => nonce));
        const parts = ['strongroom', 1, 'data', tenant, id, field, 2];
        const associatedData = Buffer.from(JSON.stringify(parts));
        const key = keys.at(2);
        assert(key !== undefined);
        assert(decrypt(key, { nonce, ciphertext: bound.subarray(29), associatedData }));
      }),
    );
  });

  test('stays readable: bytes written by the first release', () => {
    const stored =
      '01000000024142434445464748494a4b4c4d4e4f505152535455565758f2eaefac89552ce03f14f5357f57521ad4bcab1c';
    assert.equal(sealed.toString('hex'), stored);
    assert.equal(open(keys, binding, Buffer.from(stored, 'hex')).reveal(), 'text');
  });

  test('is read from any view of the bytes', () => {
    const padded = Buffer.concat([Buffer.alloc(3), sealed, Buffer.alloc(3)]);
    const view = new Uint8Array(padded.buffer, padded.byteOffset + 3, sealed.length);
    assert.equal(open(keys, binding, view).reveal(), 'text');
  });

  test('takes no text that would not come back as it was', () => {
    const refused = { name: 'AssertionError' };
    assert.throws(() => sealText(keys, binding, 'a\ud800', random), refused);
    assert.throws(() => sealText(keys, binding, Buffer.from([0xff]), random), refused);
  });
});
