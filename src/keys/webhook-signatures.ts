/** What webhooks are signed with: the vault's own key for all receivers, and a secret of each webhook. */
import {
  constants,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPair,
  type KeyObject,
  sign as signBytes,
} from 'node:crypto';
import { promisify } from 'node:util';
import { integrityError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { hmacSha256 } from './digest.ts';

/** 112 bits of security, enough until 2030 (NIST SP 800-57 part 1), at half a millisecond for a signature. */
const modulusBits = 2048;

const publicPemStart = '-----BEGIN PUBLIC KEY-----';

const generate = promisify(generateKeyPair);
const signAsync = promisify(signBytes) as (
  algorithm: string,
  data: Uint8Array,
  key: object,
) => Promise<Buffer>;

export interface WebhookKey {
  /** PEM, SubjectPublicKeyInfo. */
  readonly publicKey: string;
  /**
   * base64 of the signature over the bytes: RSA-PSS with SHA-256 and a salt as long as the digest. Other threads
   * of the process do the work.
   */
  sign(body: Uint8Array): Promise<string>;
}

/** PEM, PKCS #8. Takes a tenth of a second, outside the threads that respond to requests. */
export async function newWebhookKey(): Promise<string> {
  const { privateKey } = await generate('rsa', {
    modulusLength: modulusBits,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  return privateKey;
}

/** @param pem of a private key, or of the public one, with which nothing is signed any more. */
export function webhookKeyOf(pem: string): WebhookKey {
  if (pem.startsWith(publicPemStart)) {
    return {
      publicKey: pem,
      sign: () => Promise.reject(integrityError('a webhook key that is destroyed cannot sign')),
    };
  }
  const key = createPrivateKey(pem);
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST;
  return {
    publicKey: publicPem(key),
    sign: async (body) =>
      (await signAsync('sha256', body, { key, padding, saltLength })).toString('base64'),
  };
}

function publicPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

/** A message as Standard Webhooks signs it. */
export interface SignedMessage {
  readonly id: string;
  /** In whole seconds since 1970. */
  readonly timestamp: number;
  readonly body: Uint8Array;
}

const secretPrefix = 'whsec_';
const secretBytes = 32;

/** `whsec_` and base64 of the key of an HMAC. */
export function newWebhookSecret(random: Random): string {
  return `${secretPrefix}${random(secretBytes).toString('base64')}`;
}

/** Of one webhook. */
export type WebhookSecretKey = KeyObject;

/** The key that a secret stands for. @param secret `whsec_` and base64. */
export function webhookSecretKey(secret: string): WebhookSecretKey {
  return createSecretKey(secret.slice(secretPrefix.length), 'base64');
}

/** The header `webhook-signature`: one signature for each key, so that a receiver may still have the one before. */
export function standardSignatures(
  keys: readonly WebhookSecretKey[],
  { id, timestamp, body }: SignedMessage,
): string {
  const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), body]);
  return keys.map((key) => `v1,${hmacSha256(key, signed).toString('base64')}`).join(' ');
}
