/** Ed25519 signatures of statements, by the vectors of RFC 8032 section 7.1. */
import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import test from 'node:test';
import {
  publicKeyPem,
  readPublicKey,
  signingKeyOf,
  verifySignature,
} from '../../src/keys/signing.ts';

/** Tests 1 to 3; the message of the third is no text, so only its keys are of use here. */
const vectors = [
  {
    seed: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    publicKey: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    text: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155' +
      '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    seed: '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    publicKey: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    text: 'r',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
      '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    seed: 'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    publicKey: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
  },
] as const;

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const keyOf = (seed: string) => signingKeyOf(createSecretKey(Buffer.from(seed, 'hex')));

test('a seed gives the key pair of the standard', () => {
  for (const { seed, publicKey } of vectors) {
    assert.equal(keyOf(seed).publicKey, base64(publicKey));
  }
});

test('a text gives the signature of the standard, and only that signature verifies', () => {
  for (const vector of vectors) {
    if (!('text' in vector)) continue;
    const { text } = vector;
    const [publicKey, signature] = [base64(vector.publicKey), base64(vector.signature)];
    assert.equal(keyOf(vector.seed).sign(text), signature);
    assert.equal(verifySignature({ text, signature, publicKey }), true);
    const bytes = Buffer.from(signature, 'base64');
    for (const index of [0, 31, 32, 63]) {
      const altered = Buffer.from(bytes);
      altered[index] = (altered[index] ?? 0) ^ 1;
      const wrong = altered.toString('base64');
      assert.equal(verifySignature({ text, signature: wrong, publicKey }), false);
    }
    assert.equal(verifySignature({ text: `${text}.`, signature, publicKey }), false);
    const other = keyOf('00'.repeat(32)).publicKey;
    assert.equal(verifySignature({ text, signature, publicKey: other }), false);
  }
});

test('what cannot be a signature or a key does not verify, and does not throw', () => {
  const { publicKey, sign } = keyOf('01'.repeat(32));
  const signature = sign('text');
  for (const wrong of ['', 'AA==', `${signature}AAAA`, 'not base64']) {
    assert.equal(verifySignature({ text: 'text', signature: wrong, publicKey }), false);
    assert.equal(verifySignature({ text: 'text', signature, publicKey: wrong }), false);
  }
});

test('a public key is read from base64 and from PEM, and from nothing else', () => {
  const { publicKey } = keyOf('02'.repeat(32));
  assert.equal(readPublicKey(`${publicKey}\n`), publicKey);
  assert.equal(readPublicKey(publicKeyPem(publicKey)), publicKey);
  const x25519 = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
-----END PUBLIC KEY-----
`;
  for (const wrong of ['', 'AAAA', publicKey.slice(0, -4), publicKey.replace('=', ''), x25519]) {
    assert.equal(readPublicKey(wrong), undefined, wrong);
  }
  assert.equal(
    readPublicKey('-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'),
    undefined,
  );
});
