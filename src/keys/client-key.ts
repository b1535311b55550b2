/** Keys for browsers and apps that encrypt what only the vault may read, used in JWE (RFC 7516). */
import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { compactDecrypt, decodeProtectedHeader } from 'jose';
import type { OpeningGrant } from './envelope.ts';

/** 112 bits of security, enough until 2030 (NIST SP 800-57 part 1); no key lives longer than a year. */
const modulusBits = 2048;

/** Of a public key on Curve25519 (RFC 7748), which is the end of its SubjectPublicKeyInfo. */
const x25519Bytes = 32;

const generate = promisify(generateKeyPair);
const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;

export interface ClientKeyPair {
  /**
   * PEM: of an RSA key its SubjectPublicKeyInfo, of an X25519 key the bare 32 bytes, because that is what
   * the public clients read there.
   */
  readonly publicKey: string;
  /** PEM, PKCS #8. */
  readonly privateKey: string;
}

interface KeyWrapping {
  /** As `KeyObject` calls it. */
  readonly keyType: string;
  readonly newPair: () => Promise<ClientKeyPair>;
}

/** By their `alg` in a JWE. Content is always encrypted by {@link contentAlgorithm}. */
const algorithms = {
  'ECDH-ES': {
    keyType: 'x25519',
    newPair: async () => {
      const { publicKey, privateKey } = await generate('x25519', {
        publicKeyEncoding: { type: 'spki', format: 'der' },
        privateKeyEncoding: pkcs8,
      });
      return { publicKey: pemOf(publicKey.subarray(-x25519Bytes)), privateKey };
    },
  },
  'RSA-OAEP-256': {
    keyType: 'rsa',
    newPair: () =>
      generate('rsa', {
        modulusLength: modulusBits,
        publicKeyEncoding: { type: 'spki', format: 'pem' },
        privateKeyEncoding: pkcs8,
      }),
  },
} as const satisfies Record<string, KeyWrapping>;

const contentAlgorithm = 'A256GCM';

export type ClientKeyAlgorithm = keyof typeof algorithms;

export const clientKeyAlgorithms = Object.keys(algorithms) as readonly ClientKeyAlgorithm[];

/** Runs on a thread of libuv: an RSA pair takes a tenth of a second. */
export function newClientKeyPair(algorithm: ClientKeyAlgorithm): Promise<ClientKeyPair> {
  return algorithms[algorithm].newPair();
}

function pemOf(bytes: Buffer): string {
  return `-----BEGIN PUBLIC KEY-----\n${bytes.toString('base64')}\n-----END PUBLIC KEY-----\n`;
}

/** The private half, ready to open what was encrypted. */
export type ClientKey = KeyObject;

export function readClientKey(pem: string): ClientKey {
  return createPrivateKey(pem);
}

/** Characters of an encoded header, of which several readers parse all. What is read in it takes a tenth of that. */
const headerLengthMax = 8_192;

/** The `kid` of a JWE in its compact form; `undefined` unless it uses one of the algorithms and names a key. */
export function keyIdOfJwe(jwe: string): string | undefined {
  const length = jwe.indexOf('.');
  if (length < 0 || length > headerLengthMax) return undefined;
  try {
    const header: Readonly<Record<string, unknown>> = decodeProtectedHeader(jwe);
    const { alg, enc, kid, zip } = header;
    const isKnown = typeof alg === 'string' && Object.hasOwn(algorithms, alg);
    const isOurs = isKnown && enc === contentAlgorithm && zip === undefined;
    return isOurs && typeof kid === 'string' ? kid : undefined;
  } catch {
    return undefined;
  }
}

/** What a JWE holds, and what its protected header says of its use. */
export interface OpenedJwe {
  readonly plaintext: Buffer;
  /** From RFC 7519: in seconds, when it ends, and what identifies it; not checked here. */
  readonly exp: unknown;
  readonly jti: unknown;
}

/**
 * `undefined` when the JWE is not for this key, or was altered.
 * @param id of the key, with which the log names the opened data.
 */
export async function openJwe(
  jwe: string,
  { id, key }: { readonly id: string; readonly key: ClientKey },
  grant: OpeningGrant,
): Promise<OpenedJwe | undefined> {
  const algorithm = clientKeyAlgorithms.find(
    (name) => algorithms[name].keyType === key.asymmetricKeyType,
  );
  if (algorithm === undefined) return undefined;
  try {
    const { plaintext, protectedHeader } = await compactDecrypt(jwe, key, {
      keyManagementAlgorithms: [algorithm],
      contentEncryptionAlgorithms: [contentAlgorithm],
    });
    grant.opened({ id, field: 'jwe' });
    const { exp, jti } = protectedHeader;
    return { plaintext: Buffer.from(plaintext), exp, jti };
  } catch {
    return undefined;
  }
}
