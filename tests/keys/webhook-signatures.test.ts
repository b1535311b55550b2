/** Signatures of webhooks: verified as receivers do it, by the public sample's method and by a library. */
import assert from 'node:assert/strict';
import { constants, createVerify } from 'node:crypto';
import test from 'node:test';
import { Webhook } from 'standardwebhooks';
import {
  newWebhookKey,
  standardSignatures,
  webhookKeyOf,
  webhookSecretKey,
} from '../../src/keys/webhook-signatures.ts';

const body = Buffer.from('{"delivered_at":"2030-01-01T00:00:00.000Z","event":{"data":{}}}');

/** The sample verifies with Node's defaults for the salt. */
function isSigned(publicKey: string, signed: Uint8Array, signature: string): boolean {
  const verifier = createVerify('SHA256').update(signed);
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return verifier.verify({ key: publicKey, padding }, signature, 'base64');
}

test('whoever has the public key verifies what the vault signed, and nothing else', async () => {
  const key = webhookKeyOf(await newWebhookKey());
  const signature = await key.sign(body);
  assert.equal(isSigned(key.publicKey, body, signature), true);
  const altered = Buffer.from(body);
  altered[20] = (altered[20] ?? 0) ^ 1;
  assert.equal(isSigned(key.publicKey, altered, signature), false);
  const other = webhookKeyOf(await newWebhookKey());
  assert.equal(isSigned(other.publicKey, body, signature), false);
  assert.match(key.publicKey, /^-----BEGIN PUBLIC KEY-----\n/);
});

test('the salt is as long as the digest, for verifiers that ask for it', async () => {
  const key = webhookKeyOf(await newWebhookKey());
  const signature = await key.sign(body);
  const options = { key: key.publicKey, padding: constants.RSA_PKCS1_PSS_PADDING };
  const verify = (saltLength: number) =>
    createVerify('SHA256')
      .update(body)
      .verify({ ...options, saltLength }, signature, 'base64');
  assert.equal(verify(32), true);
  assert.equal(verify(31), false);
});

test('Standard Webhooks: the library accepts each of the secrets, the id and the time it was signed with', () => {
  const [own, before, foreign] = ['a', 'b', 'c'].map(
    (text) => `whsec_${Buffer.alloc(24, text).toString('base64')}`,
  ) as [string, string, string];
  const timestamp = Math.floor(Date.now() / 1000);
  const signatures = standardSignatures([own, before].map(webhookSecretKey), {
    id: 'an id',
    timestamp,
    body,
  });
  assert.match(signatures, /^v1,[A-Za-z0-9+/]{43}= v1,[A-Za-z0-9+/]{43}=$/);
  const headers = {
    'webhook-id': 'an id',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures,
  };
  for (const secret of [own, before]) {
    assert.deepEqual(new Webhook(secret).verify(body, headers), JSON.parse(body.toString()));
  }
  assert.throws(() => new Webhook(foreign).verify(body, headers), /No matching signature/);
  const otherId = { ...headers, 'webhook-id': 'another id' };
  assert.throws(() => new Webhook(own).verify(body, otherId), /No matching signature/);
  const otherTime = { ...headers, 'webhook-timestamp': String(timestamp - 1) };
  assert.throws(() => new Webhook(own).verify(body, otherTime), /No matching signature/);
});
