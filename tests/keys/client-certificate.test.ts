/** Client keys of proxies: every handshake with their destination makes a signature in the thread of the requests. */
import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { readPrivateKey } from '../../src/keys/client-certificate.ts';

const pemOf = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** ASN.1 of a positive odd number with its highest bit set. */
function numberOf(bits: number): Buffer {
  const bytes = randomBytes(bits / 8);
  bytes[0] = (bytes[0] ?? 0) | 0x80;
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 1;
  return tagged(0x02, Buffer.concat([Buffer.alloc(1), bytes]));
}

function tagged(tag: number, content: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(content.length);
  return Buffer.concat([Buffer.from([tag, 0x82]), length, content]);
}

const version = Buffer.from([0x02, 0x01, 0x00]);
const publicExponent = Buffer.from([0x02, 0x03, 0x01, 0x00, 0x01]);

/** OpenSSL does not check that the modulus of a key is the product of its primes. */
function rsaKey(bits: number): string {
  const [n, d] = [numberOf(bits), numberOf(bits)];
  const others = Array.from({ length: 5 }, () => numberOf(bits / 2));
  const key = tagged(0x30, Buffer.concat([version, n, publicExponent, d, ...others]));
  return pemOf(createPrivateKey({ key, format: 'der', type: 'pkcs1' }));
}

test('keys with fast signatures are read', () => {
  const keys = [
    generateKeyPairSync('ec', { namedCurve: 'P-521' }),
    generateKeyPairSync('ed25519'),
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ];
  for (const { privateKey } of keys) assert.ok(readPrivateKey(pemOf(privateKey)));
  assert.ok(readPrivateKey(rsaKey(4096)));
});

test('a key with which a signature would block the thread is not', () => {
  for (const bits of [4104, 8192, 16_384]) assert.equal(readPrivateKey(rsaKey(bits)), undefined);
});

test('a key of another kind is not', () => {
  const { privateKey } = generateKeyPairSync('x25519');
  assert.equal(readPrivateKey(pemOf(privateKey)), undefined);
});
