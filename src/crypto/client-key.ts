/** Keys for browsers and apps that encrypt what only the vault may read: RSA, used in JWE (RFC 7516). */
import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { compactDecrypt, decodeProtectedHeader } from 'jose';

/** 112 bits of security, enough until 2030 (NIST SP 800-57 part 1); no key lives longer than a year. */
const modulusBits = 2048;

/** The only algorithms: one way to wrap a key, one to encrypt with it. */
const keyAlgorithm = 'RSA-OAEP-256';
const contentAlgorithm = 'A256GCM';

const generate = promisify(generateKeyPair);

export interface ClientKeyPair {
  /** PEM, SubjectPublicKeyInfo. */
  readonly publicKey: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
}

/** Takes a tenth of a second, on no thread that answers requests. */
export async function newClientKeyPair(): Promise<ClientKeyPair> {
  return generate('rsa', {
    modulusLength: modulusBits,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
}

/** The private half, ready to open what was encrypted. */
export type ClientKey = KeyObject;

export function readClientKey(pem: string): ClientKey {
  return createPrivateKey(pem);
}

/** The `kid` of a JWE in its compact form; `undefined` unless it is one by {@link keyAlgorithm} that names a key. */
export function keyIdOfJwe(jwe: string): string | undefined {
  try {
    const { alg, enc, kid, zip } = decodeProtectedHeader(jwe);
    const isOurs = alg === keyAlgorithm && enc === contentAlgorithm && zip === undefined;
    return isOurs ? kid : undefined;
  } catch {
    return undefined;
  }
}

/** The plaintext of a JWE; `undefined` when it is not for this key, or was altered. */
export async function openJwe(jwe: string, key: ClientKey): Promise<Buffer | undefined> {
  try {
    const { plaintext } = await compactDecrypt(jwe, key, {
      keyManagementAlgorithms: [keyAlgorithm],
      contentEncryptionAlgorithms: [contentAlgorithm],
    });
    return Buffer.from(plaintext);
  } catch {
    return undefined;
  }
}
