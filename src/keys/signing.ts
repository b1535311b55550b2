/** Ed25519 (RFC 8032): signed statements that can be verified with the public key alone. */
import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from 'node:crypto';

const publicKeyBytes = 32;

/** What precedes the 32 bytes of a private and of a public key in DER (RFC 8410). */
const privatePrefix = Buffer.from('302e020100300506032b657004220420', 'hex');
const publicPrefix = Buffer.from('302a300506032b6570032100', 'hex');

export interface SigningKey {
  /** base64 of the 32 bytes of the public key. */
  readonly publicKey: string;
  /** base64 of the signature over the string's UTF-8 bytes. */
  sign(text: string): string;
}

/** The key pair of a 32-byte seed. The same seed always gives the same pair. */
export function signingKeyOf(seed: KeyObject): SigningKey {
  const bytes = seed.export();
  const der = Buffer.concat([privatePrefix, bytes]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  bytes.fill(0);
  der.fill(0);
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return {
    publicKey: spki.subarray(publicPrefix.length).toString('base64'),
    sign: (text) => signBytes(null, Buffer.from(text), key).toString('base64'),
  };
}

export interface SignedText {
  readonly text: string;
  /** Both base64. */
  readonly signature: string;
  readonly publicKey: string;
}

/** Also false for a malformed key or signature. */
export function verifySignature({ text, signature, publicKey }: SignedText): boolean {
  const key = readPublicKey(publicKey);
  const bytes = Buffer.from(signature, 'base64');
  // Node skips what is not base64; a signature has exactly one spelling.
  if (key === undefined || bytes.toString('base64') !== signature) return false;
  return verifyBytes(null, Buffer.from(text), keyObjectOf(key), bytes);
}

/** Reads base64 of the 32 bytes, or PEM, and gives base64; `undefined` when it is not an Ed25519 key. */
export function readPublicKey(text: string): string | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('-----BEGIN PUBLIC KEY-----')) {
    const bytes = Buffer.from(trimmed, 'base64');
    const exact = bytes.length === publicKeyBytes && bytes.toString('base64') === trimmed;
    return exact ? trimmed : undefined;
  }
  try {
    const key = createPublicKey(trimmed);
    if (key.asymmetricKeyType !== 'ed25519') return undefined;
    const spki = key.export({ format: 'der', type: 'spki' });
    return spki.subarray(publicPrefix.length).toString('base64');
  } catch {
    return undefined;
  }
}

/** As tools such as OpenSSL take it. */
export function publicKeyPem(publicKey: string): string {
  return keyObjectOf(publicKey).export({ format: 'pem', type: 'spki' });
}

function keyObjectOf(publicKey: string): KeyObject {
  const der = Buffer.concat([publicPrefix, Buffer.from(publicKey, 'base64')]);
  return createPublicKey({ key: der, format: 'der', type: 'spki' });
}
