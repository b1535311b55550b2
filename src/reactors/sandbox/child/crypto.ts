/**
 * Cryptography that code requests. The child process computes it: untrusted keys and strings reach OpenSSL there, not
 * in the process that holds the vault's keys, and the work ends with the call's time limit.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  pbkdf2Sync,
  privateDecrypt,
  publicEncrypt,
  randomInt,
  scryptSync,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';

import * as limits from '../limits.ts';

type CryptoInput = Readonly<Record<string, unknown>>;

/** By name. Errors that an operation throws are shown to the code. */
const operations: Readonly<Record<string, (input: CryptoInput) => unknown>> = {
  digest: ({ algorithm, key, data }) => {
    const name = String(algorithm);
    const hash = key === undefined ? createHash(name) : createHmac(name, keyFrom(key));
    return hash.update(bytes(data)).digest('base64');
  },
  equal: ({ one, other }) => timingSafeEqual(bytes(one), bytes(other)),
  randomInt: ({ low, high }) => randomInt(Number(low), Number(high)),
  cipher,
  sign: ({ algorithm, data, key, ...options }) =>
    sign(nameOf(algorithm), bytes(data), { key: keyFrom(key), ...signing(options) }).toString(
      'base64',
    ),
  verify: ({ algorithm, data, key, signature, ...options }) => {
    const given = { key: keyFrom(key), ...signing(options) };
    return verify(nameOf(algorithm), bytes(data), given, bytes(signature));
  },
  publicEncrypt: ({ key, data, ...options }) =>
    publicEncrypt({ key: keyFrom(key), ...encryption(options) }, bytes(data)).toString('base64'),
  privateDecrypt: ({ key, data, ...options }) =>
    privateDecrypt({ key: keyFrom(key), ...encryption(options) }, bytes(data)).toString('base64'),
  describe: ({ key }) => {
    const { type, asymmetricKeyType, asymmetricKeyDetails, symmetricKeySize } = keyFrom(key);
    const { modulusLength, namedCurve } = asymmetricKeyDetails ?? {};
    const details = asymmetricKeyDetails && { modulusLength, namedCurve };
    return { type, asymmetricKeyType, asymmetricKeyDetails: details, symmetricKeySize };
  },
  export: ({ key, options }) => {
    const { format, type } = options as CryptoInput;
    const object = keyFrom(key);
    if (format === 'jwk') return object.export({ format: 'jwk' });
    if (object.type === 'secret') return object.export().toString('base64');
    const fallback = object.type === 'public' ? 'spki' : 'pkcs8';
    const chosen = { format: format === 'pem' ? 'pem' : 'der', type: type ?? fallback };
    return Buffer.from(object.export(chosen as never) as unknown as string).toString('base64');
  },
  derive,
};

/** JSON in and out. */
export function compute(text: string): string {
  const { operation, ...input } = JSON.parse(text) as CryptoInput;
  const name = String(operation);
  if (!Object.hasOwn(operations, name)) throw new TypeError('unknown operation');
  return JSON.stringify(operations[name]?.(input)) ?? 'null';
}

function cipher({
  direction,
  algorithm,
  key,
  iv,
  data,
  aad,
  tag,
  tagLength,
  padding,
}: CryptoInput) {
  const name = String(algorithm).toLowerCase();
  if (!/^aes-?(?:128|192|256)-(?:cbc|ctr|ecb|gcm)$/.test(name)) {
    throw new TypeError('Unknown cipher: use AES in the mode cbc, ctr, ecb or gcm');
  }
  const isEncryption = direction === 'encrypt';
  const options = tagLength === undefined ? {} : { authTagLength: Number(tagLength) };
  const create = (isEncryption ? createCipheriv : createDecipheriv) as typeof createDecipheriv;
  const made = create(name, keyFrom(key), iv === undefined ? null : bytes(iv), options as never);
  const isAuthenticated = name.endsWith('gcm');
  if (aad !== undefined) (made as unknown as { setAAD(aad: Buffer): void }).setAAD(bytes(aad));
  if (isAuthenticated && !isEncryption) {
    (made as unknown as { setAuthTag(tag: Buffer): void }).setAuthTag(bytes(tag));
  }
  if (padding !== undefined) made.setAutoPadding(padding === true);
  const done = Buffer.concat([made.update(bytes(data)), made.final()]);
  if (!isAuthenticated || !isEncryption) return { bytes: done.toString('base64') };
  const made2 = made as unknown as { getAuthTag(): Buffer };
  return { bytes: done.toString('base64'), tag: made2.getAuthTag().toString('base64') };
}

function derive({
  kind,
  password,
  salt,
  info,
  length,
  iterations,
  algorithm,
  options,
}: CryptoInput): string {
  const size = Number(length);
  if (size > limits.derivedBytesMax) {
    throw new RangeError(`A derived key may have at most ${limits.derivedBytesMax} bytes here`);
  }
  if (kind === 'scrypt') {
    const bounded = scryptOptions(options as CryptoInput);
    return scryptSync(bytes(password), bytes(salt), size, bounded).toString('base64');
  }
  const name = String(algorithm);
  if (kind === 'hkdf') {
    return Buffer.from(hkdfSync(name, bytes(password), bytes(salt), bytes(info), size)).toString(
      'base64',
    );
  }
  const turns = Number(iterations);
  return pbkdf2Sync(bytes(password), bytes(salt), turns, size, name).toString('base64');
}

/** OpenSSL allocates 128 · r · (N + p) bytes outside the engine, so the engine's limit does not apply. */
function scryptOptions({ N, r, p, cost, blockSize, parallelization, maxmem }: CryptoInput) {
  const bounded = {
    N: Number(N ?? cost ?? 16_384),
    r: Number(r ?? blockSize ?? 8),
    p: Number(p ?? parallelization ?? 1),
  };
  const needed = 128 * bounded.r * (bounded.N + bounded.p);
  if (!(needed <= limits.derivationBytesMax)) {
    const bound = `at most ${limits.derivationBytesMax} bytes, 128 * r * (N + p), here`;
    throw new RangeError(`Invalid scrypt parameters: key derivation may take ${bound}`);
  }
  const most = limits.derivationBytesMax;
  return { ...bounded, maxmem: maxmem === undefined ? most : Math.min(Number(maxmem), most) };
}

/** A key as the code gave it: PEM, DER, JWK, or the bytes of a secret. */
function keyFrom(given: unknown): KeyObject {
  const { kind, text, format, type, passphrase } = given as CryptoInput;
  const [purpose = '', isJwk] = String(kind).split(' ');
  if (purpose === 'secret' && isJwk === undefined) return createSecretKey(bytes(text));
  const create = purpose === 'public' ? createPublicKey : createPrivateKey;
  if (isJwk) return create({ key: JSON.parse(String(text)), format: 'jwk' });
  const key = bytes(text);
  const isDer = format === 'der' && { format, type };
  return create({ key, ...isDer, ...(passphrase !== undefined && { passphrase }) } as never);
}

function signing({ padding, saltLength, dsaEncoding }: CryptoInput): object {
  return { padding, saltLength, ...(dsaEncoding !== undefined && { dsaEncoding }) };
}

function encryption({ padding, oaepHash, oaepLabel }: CryptoInput): object {
  const label = oaepLabel === undefined ? undefined : bytes(oaepLabel);
  return { padding, oaepHash, oaepLabel: label };
}

function nameOf(algorithm: unknown): string | null {
  return algorithm === null || algorithm === undefined ? null : String(algorithm);
}

function bytes(base64: unknown): Buffer {
  return Buffer.from(String(base64), 'base64');
}
