/** A subset of the Web Cryptography API, over the same host as the crypto module. */
import type { BufferPart, CryptoPart, NodeKey as Key, NamedExports } from './parts.ts';

export function webcrypto(node: CryptoPart, { Buffer, bytesOf }: BufferPart): NamedExports {
  interface Algorithm {
    readonly name: string;
    readonly hash?: string | { readonly name: string };
    readonly iv?: unknown;
    readonly additionalData?: unknown;
    readonly tagLength?: number;
    readonly saltLength?: number;
    readonly label?: unknown;
    readonly namedCurve?: string;
  }

  class CryptoKey {
    readonly #key: Key;
    readonly type: string;
    readonly extractable: boolean;
    readonly algorithm: Algorithm;
    readonly usages: readonly string[];

    constructor(key: Key, more: { algorithm: Algorithm; extractable: boolean; usages: string[] }) {
      this.#key = key;
      this.type = key.type;
      this.algorithm = more.algorithm;
      this.extractable = more.extractable;
      this.usages = more.usages;
    }

    static open(given: CryptoKey, usage: string): Key {
      if (!given.usages.includes(usage)) throw new TypeError(`The key may not be used to ${usage}`);
      return given.#key;
    }

    static exported(given: CryptoKey): Key {
      if (!given.extractable) throw new TypeError('The key is not extractable');
      return given.#key;
    }
  }

  function named(given: string | Algorithm): Algorithm {
    return typeof given === 'string' ? { name: given } : { ...given };
  }

  function hashOf(given: Algorithm['hash']): string {
    const name = typeof given === 'string' ? given : String(given?.name);
    return name.toLowerCase().replace('sha-', 'sha');
  }

  function bytes(value: unknown): ArrayBuffer {
    return Uint8Array.from(value as Uint8Array).buffer;
  }

  function aes(direction: 'encrypt' | 'decrypt', options: Algorithm, key: Key, data: unknown) {
    const mode = options.name.toLowerCase().replace('aes-', '');
    if (!['gcm', 'cbc'].includes(mode))
      throw new TypeError(`Unsupported algorithm: ${options.name}`);
    const name = `aes-${Number(key.symmetricKeySize) * 8}-${mode}`;
    const tagLength = (options.tagLength ?? 128) / 8;
    const given = mode === 'gcm' ? { authTagLength: tagLength } : {};
    const isEncryption = direction === 'encrypt';
    const create = isEncryption ? node.createCipheriv : node.createDecipheriv;
    const cipher = create(name, key, options.iv, given);
    if (options.additionalData !== undefined) cipher.setAAD(options.additionalData);
    let text = bytesOf(data);
    if (mode === 'gcm' && !isEncryption) {
      cipher.setAuthTag(text.subarray(text.length - tagLength));
      text = text.subarray(0, text.length - tagLength);
    }
    cipher.update(text);
    const done = cipher.final() as Uint8Array;
    return mode === 'gcm' && isEncryption ? Buffer.concat([done, cipher.getAuthTag()]) : done;
  }

  function signatureOptions(options: Algorithm, key: Key) {
    if (options.name === 'RSA-PSS') {
      return {
        key,
        padding: node.constants['RSA_PKCS1_PSS_PADDING'],
        saltLength: options.saltLength,
      };
    }
    return options.name === 'ECDSA' ? { key, dsaEncoding: 'ieee-p1363' } : key;
  }

  function oaep(options: Algorithm, given: CryptoKey, key: Key) {
    const oaepHash = hashOf(given.algorithm.hash);
    const padding = node.constants['RSA_PKCS1_OAEP_PADDING'];
    return {
      key,
      padding,
      oaepHash,
      ...(options.label !== undefined && { oaepLabel: options.label }),
    };
  }

  function signatureHash(options: Algorithm, key: CryptoKey): string | undefined {
    return options.name === 'Ed25519' ? undefined : hashOf(options.hash ?? key.algorithm.hash);
  }

  const subtle = {
    async digest(algorithm: string | Algorithm, data: unknown) {
      return bytes(
        node
          .createHash(hashOf(named(algorithm).name))
          .update(data)
          .digest(),
      );
    },
    async importKey(...given: [string, unknown, string | Algorithm, boolean, string[]]) {
      const [format, data, algorithm, extractable, usages] = given;
      const more = { algorithm: named(algorithm), extractable, usages: [...usages] };
      if (format === 'raw')
        return new CryptoKey(node.createSecretKey(Buffer.from(bytesOf(data))), more);
      if (format === 'jwk') {
        const jwk = data as { kty?: string; k?: string; d?: string };
        if (jwk.kty === 'oct') return new CryptoKey(node.createSecretKey(jwk.k, 'base64url'), more);
        const create = jwk.d === undefined ? node.createPublicKey : node.createPrivateKey;
        return new CryptoKey(create({ key: jwk, format: 'jwk' }), more);
      }
      const key = Buffer.from(bytesOf(data));
      if (format === 'spki') {
        return new CryptoKey(node.createPublicKey({ key, format: 'der', type: 'spki' }), more);
      }
      if (format !== 'pkcs8') throw new TypeError(`Unsupported format: ${format}`);
      return new CryptoKey(node.createPrivateKey({ key, format: 'der', type: 'pkcs8' }), more);
    },
    async exportKey(format: string, given: CryptoKey) {
      const key = CryptoKey.exported(given);
      if (format === 'jwk') return key.export({ format: 'jwk' });
      return bytes(key.export(format === 'raw' ? {} : { format: 'der' }));
    },
    async sign(algorithm: string | Algorithm, given: CryptoKey, data: unknown) {
      const options = named(algorithm);
      const key = CryptoKey.open(given, 'sign');
      const hash = signatureHash(options, given);
      if (options.name === 'HMAC') return bytes(node.createHmac(hash, key).update(data).digest());
      return bytes(node.sign(hash, data, signatureOptions(options, key)));
    },
    async verify(
      ...[algorithm, given, signature, data]: [string | Algorithm, CryptoKey, unknown, unknown]
    ) {
      const options = named(algorithm);
      const key = CryptoKey.open(given, 'verify');
      const hash = signatureHash(options, given);
      if (options.name !== 'HMAC') {
        return node.verify(hash, data, signatureOptions(options, key), signature);
      }
      const made = node.createHmac(hash, key).update(data).digest() as Uint8Array;
      return made.length === bytesOf(signature).length && node.timingSafeEqual(made, signature);
    },
    async encrypt(algorithm: Algorithm, given: CryptoKey, data: unknown) {
      const key = CryptoKey.open(given, 'encrypt');
      if (algorithm.name !== 'RSA-OAEP') return bytes(aes('encrypt', algorithm, key, data));
      return bytes(node.publicEncrypt(oaep(algorithm, given, key), data));
    },
    async decrypt(algorithm: Algorithm, given: CryptoKey, data: unknown) {
      const key = CryptoKey.open(given, 'decrypt');
      if (algorithm.name !== 'RSA-OAEP') return bytes(aes('decrypt', algorithm, key, data));
      return bytes(node.privateDecrypt(oaep(algorithm, given, key), data));
    },
  };

  return {
    CryptoKey,
    subtle,
    randomUUID: node.randomUUID,
    getRandomValues: node.randomFillSync,
  };
}
