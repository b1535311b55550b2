/** Node's crypto module: the host computes, with bytes in base64. */
import type { Host } from './host.ts';
import type { BufferPart, CryptoPart, GuestBuffer, RandomPart } from './parts.ts';

interface CryptoParts {
  readonly host: Host;
  readonly buffer: BufferPart;
  readonly random: RandomPart;
}

export function crypto({ host, buffer: { Buffer, bytesOf }, random }: CryptoParts): CryptoPart {
  interface GuestKey {
    readonly kind: string;
    readonly text: string;
    readonly [detail: string]: unknown;
  }

  function compute(operation: string, input: object): unknown {
    return host.askJson('crypto', { operation, ...input });
  }

  function bytesFrom(operation: string, input: object): GuestBuffer {
    return Buffer.from(String(compute(operation, input)), 'base64');
  }

  function base64(value: unknown, encoding?: unknown): string {
    return bytesOf(value, encoding).toBase64();
  }

  function out(bytes: GuestBuffer, encoding?: unknown): unknown {
    return encoding === undefined || encoding === 'buffer' ? bytes : bytes.toString(encoding);
  }

  class KeyObject {
    readonly #key: GuestKey;
    readonly type: string;
    readonly asymmetricKeyType: unknown;
    readonly asymmetricKeyDetails: unknown;
    readonly symmetricKeySize: unknown;

    constructor(key: GuestKey, shown: { type: string; [name: string]: unknown }) {
      this.#key = key;
      this.type = shown.type;
      this.asymmetricKeyType = shown['asymmetricKeyType'];
      this.asymmetricKeyDetails = shown['asymmetricKeyDetails'];
      this.symmetricKeySize = shown['symmetricKeySize'];
    }

    static keyOf(value: object): GuestKey | undefined {
      return #key in value ? (value as KeyObject).#key : undefined;
    }

    export(options: { format?: string } = {}): unknown {
      const exported = compute('export', { key: this.#key, options: { ...options } });
      if (options.format === 'jwk') return exported;
      const bytes = Buffer.from(String(exported), 'base64');
      return options.format === 'pem' ? bytes.toString() : bytes;
    }
  }

  /** A key as the host takes it, from whatever Node's functions accept. */
  function keyOf(given: unknown, fallback: string): GuestKey {
    if (typeof given === 'object' && given !== null) {
      const known = KeyObject.keyOf(given);
      if (known !== undefined) return known;
      if (!ArrayBuffer.isView(given) && !(given instanceof ArrayBuffer)) {
        const { key, passphrase, format, type, ...rest } = given as Record<string, unknown>;
        const isJwk = format === 'jwk';
        if (isJwk) return { ...rest, kind: `${fallback} jwk`, text: JSON.stringify(key) };
        const inner = keyOf(key, fallback);
        return { ...rest, ...inner, passphrase, format, type };
      }
    }
    return { kind: fallback, text: base64(given) };
  }

  function optionsOf(given: unknown): Record<string, unknown> {
    if (
      typeof given !== 'object' ||
      given === null ||
      KeyObject.keyOf(given) ||
      ArrayBuffer.isView(given)
    )
      return {};
    const { padding, saltLength, dsaEncoding, oaepHash, oaepLabel } = given as Record<
      string,
      unknown
    >;
    const label = oaepLabel === undefined ? undefined : base64(oaepLabel);
    return { padding, saltLength, dsaEncoding, oaepHash, oaepLabel: label };
  }

  function keyObject(given: unknown, kind: string): KeyObject {
    const key = keyOf(given, kind);
    return new KeyObject(key, compute('describe', { key }) as { type: string });
  }

  /** Collects what is to be computed in one request. */
  class Collected {
    #parts: Uint8Array[] = [];
    #isDone = false;

    update(data: unknown, encoding?: unknown): this {
      if (this.#isDone) throw new Error('Digest already called');
      this.#parts.push(bytesOf(data, encoding).slice());
      return this;
    }

    protected taken(): string {
      if (this.#isDone) throw new Error('Digest already called');
      this.#isDone = true;
      return Buffer.concat(this.#parts).toBase64();
    }
  }

  class Hash extends Collected {
    readonly #input: object;

    constructor(input: object) {
      super();
      this.#input = input;
    }

    digest(encoding?: unknown): unknown {
      return out(bytesFrom('digest', { ...this.#input, data: this.taken() }), encoding);
    }
  }

  class Cipher {
    readonly #input: Record<string, unknown>;
    readonly #parts: Uint8Array[] = [];
    #tag: string | undefined;

    constructor(input: Record<string, unknown>) {
      this.#input = input;
    }

    /** Gives nothing yet: `final` gives all. What both give together is as with Node. */
    update(data: unknown, from?: unknown, to?: unknown): unknown {
      this.#parts.push(bytesOf(data, from).slice());
      return out(Buffer.alloc(0), to);
    }

    final(encoding?: unknown): unknown {
      const data = Buffer.concat(this.#parts).toBase64();
      const { bytes, tag } = compute('cipher', { ...this.#input, data }) as Record<string, string>;
      this.#tag = tag;
      return out(Buffer.from(bytes, 'base64'), encoding);
    }

    setAAD(data: unknown): this {
      this.#input['aad'] = base64(data);
      return this;
    }

    setAuthTag(tag: unknown, encoding?: unknown): this {
      this.#input['tag'] = base64(tag, encoding);
      return this;
    }

    getAuthTag(): GuestBuffer {
      if (this.#tag === undefined) throw new Error('There is no tag before final');
      return Buffer.from(this.#tag, 'base64');
    }

    setAutoPadding(padding = true): this {
      this.#input['padding'] = padding;
      return this;
    }
  }

  function cipher(direction: string) {
    return (
      algorithm: unknown,
      key: unknown,
      iv: unknown,
      options: { authTagLength?: number } = {},
    ) =>
      new Cipher({
        direction,
        algorithm,
        key: keyOf(key, 'secret'),
        iv: iv === null ? undefined : base64(iv),
        tagLength: options?.authTagLength,
      });
  }

  class Signing extends Collected {
    readonly #algorithm: unknown;

    constructor(algorithm: unknown) {
      super();
      this.#algorithm = algorithm;
    }

    sign(key: unknown, encoding?: unknown): unknown {
      return out(signed(this.#algorithm, this.taken(), key), encoding);
    }

    verify(key: unknown, signature: unknown, encoding?: unknown): unknown {
      return verified(this.#algorithm, this.taken(), {
        key,
        signature: base64(signature, encoding),
      });
    }
  }

  function signed(algorithm: unknown, data: string, key: unknown): GuestBuffer {
    return bytesFrom('sign', { algorithm, data, key: keyOf(key, 'private'), ...optionsOf(key) });
  }

  function verified(algorithm: unknown, data: string, given: { key: unknown; signature: string }) {
    const { key, signature } = given;
    const input = { algorithm, data, signature, key: keyOf(key, 'public'), ...optionsOf(key) };
    return compute('verify', input) === true;
  }

  const derive = (input: Record<string, unknown>) => bytesFrom('derive', input);

  const all = {
    KeyObject,
    createHash: (algorithm: unknown) => new Hash({ algorithm }),
    createHmac: (algorithm: unknown, key: unknown) =>
      new Hash({ algorithm, key: keyOf(key, 'secret') }),
    hash: (algorithm: unknown, data: unknown, encoding = 'hex') =>
      new Hash({ algorithm }).update(data).digest(encoding),
    ...random,
    randomInt: (low: number, high?: number) =>
      Number(compute('randomInt', high === undefined ? { low: 0, high: low } : { low, high })),
    timingSafeEqual: (one: unknown, other: unknown) =>
      compute('equal', { one: base64(one), other: base64(other) }) === true,
    createCipheriv: cipher('encrypt'),
    createDecipheriv: cipher('decrypt'),
    createSign: (algorithm: unknown) => new Signing(algorithm),
    createVerify: (algorithm: unknown) => new Signing(algorithm),
    sign: (algorithm: unknown, data: unknown, key: unknown) => signed(algorithm, base64(data), key),
    verify: (algorithm: unknown, data: unknown, key: unknown, signature: unknown) =>
      verified(algorithm, base64(data), { key, signature: base64(signature) }),
    publicEncrypt: (key: unknown, data: unknown) =>
      bytesFrom('publicEncrypt', {
        key: keyOf(key, 'public'),
        ...optionsOf(key),
        data: base64(data),
      }),
    privateDecrypt: (key: unknown, data: unknown) =>
      bytesFrom('privateDecrypt', {
        key: keyOf(key, 'private'),
        ...optionsOf(key),
        data: base64(data),
      }),
    createPublicKey: (key: unknown) => keyObject(key, 'public'),
    createPrivateKey: (key: unknown) => keyObject(key, 'private'),
    createSecretKey: (key: unknown, encoding?: unknown) =>
      keyObject(Buffer.from(base64(key, encoding), 'base64'), 'secret'),
    pbkdf2Sync: (...[password, salt, iterations, length, algorithm]: unknown[]) =>
      derive({
        kind: 'pbkdf2',
        password: base64(password),
        salt: base64(salt),
        iterations,
        length,
        algorithm,
      }),
    hkdfSync: (...[algorithm, key, salt, info, length]: unknown[]) =>
      derive({
        kind: 'hkdf',
        algorithm,
        password: base64(key),
        salt: base64(salt),
        info: base64(info),
        length,
      }).buffer,
    scryptSync: (password: unknown, salt: unknown, length: unknown, options: object = {}) =>
      derive({ kind: 'scrypt', password: base64(password), salt: base64(salt), length, options }),
    constants: {
      RSA_PKCS1_PADDING: 1,
      RSA_NO_PADDING: 3,
      RSA_PKCS1_OAEP_PADDING: 4,
      RSA_PKCS1_PSS_PADDING: 6,
      RSA_PSS_SALTLEN_DIGEST: -1,
      RSA_PSS_SALTLEN_MAX_SIGN: -2,
      RSA_PSS_SALTLEN_AUTO: -2,
    },
  };
  return all;
}
