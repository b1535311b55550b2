/** The interfaces between the parts of the prelude. */

export interface GuestBuffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: unknown): string;
}

export interface BufferClass {
  new (size: number): GuestBuffer;
  from(value: unknown, more?: unknown, length?: number): GuestBuffer;
  alloc(size: number): GuestBuffer;
  concat(list: readonly Uint8Array[], total?: number): GuestBuffer;
}

export interface BufferPart {
  readonly Buffer: BufferClass;
  encode(text: string, encoding?: unknown): Uint8Array<ArrayBuffer>;
  bytesOf(value: unknown, encoding?: unknown): Uint8Array<ArrayBuffer>;
}

export interface RandomPart {
  randomBytes(
    size: number,
    done?: (error: null, bytes: GuestBuffer) => void,
  ): GuestBuffer | undefined;
  randomFillSync<T extends ArrayBufferView>(target: T): T;
  randomUUID(): string;
}

export interface NodeKey {
  readonly type: string;
  readonly symmetricKeySize: unknown;
  export(options?: { readonly format?: string }): unknown;
}

interface NodeHash {
  update(data: unknown, encoding?: unknown): NodeHash;
  digest(encoding?: unknown): unknown;
}

interface NodeCipher {
  update(data: unknown): unknown;
  final(): unknown;
  setAAD(data: unknown): void;
  setAuthTag(tag: unknown): void;
  getAuthTag(): GuestBuffer;
}

type CipherOf = (...given: readonly [unknown, unknown, unknown, object?]) => NodeCipher;

/** The parts of Node's module that other parts use. */
export interface CryptoPart extends RandomPart {
  createHash(algorithm: unknown): NodeHash;
  createHmac(algorithm: unknown, key: unknown): NodeHash;
  timingSafeEqual(one: unknown, other: unknown): boolean;
  readonly createCipheriv: CipherOf;
  readonly createDecipheriv: CipherOf;
  sign(...given: readonly [algorithm: unknown, data: unknown, key: unknown]): GuestBuffer;
  verify(...given: readonly [unknown, data: unknown, key: unknown, signature: unknown]): boolean;
  publicEncrypt(key: unknown, data: unknown): GuestBuffer;
  privateDecrypt(key: unknown, data: unknown): GuestBuffer;
  createPublicKey(key: unknown): NodeKey;
  createPrivateKey(key: unknown): NodeKey;
  createSecretKey(key: unknown, encoding?: unknown): NodeKey;
  readonly constants: Readonly<Record<string, number>>;
}

/** A module or a set of globals that no other part uses. */
export type NamedExports = Readonly<Record<string, unknown>>;

export interface ReportedError {
  readonly name: string;
  readonly errors: Readonly<Record<string, readonly string[]>>;
  readonly response?: {
    readonly status: unknown;
    readonly headers: unknown;
    readonly body: unknown;
  };
}

export interface ErrorsPart {
  readonly classes: NamedExports;
  report(thrown: unknown): ReportedError;
}

export interface LoggingPart {
  readonly console: NamedExports;
  readonly logger: NamedExports;
}
