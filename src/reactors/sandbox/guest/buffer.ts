/** Node's Buffer, as far as code that signs and encodes uses it. The host converts strings. */
import type { Host } from './host.ts';
import type { BufferClass, BufferPart } from './parts.ts';

export function buffer(host: Host): BufferPart {
  const encodings = ['utf8', 'hex', 'base64', 'base64url', 'latin1', 'ascii', 'utf16le'];
  const aliases: Record<string, string> = {
    'utf-8': 'utf8',
    binary: 'latin1',
    'utf-16le': 'utf16le',
    ucs2: 'utf16le',
    'ucs-2': 'utf16le',
  };

  function encodingOf(given: unknown): string {
    if (given === undefined || given === null || given === '') return 'utf8';
    const name = String(given).toLowerCase();
    const encoding = aliases[name] ?? name;
    if (!encodings.includes(encoding)) throw new TypeError(`Unknown encoding: ${name}`);
    return encoding;
  }

  function encode(text: string, encoding?: unknown): Uint8Array<ArrayBuffer> {
    return Uint8Array.fromBase64(host.ask(`encode:${encodingOf(encoding)}`, text));
  }

  function decode(bytes: Uint8Array, encoding?: unknown): string {
    const name = encodingOf(encoding);
    if (name === 'hex') return bytes.toHex();
    const base64 = bytes.toBase64();
    return name === 'base64' ? base64 : host.ask(`decode:${name}`, base64);
  }

  function bytesOf(value: unknown, encoding?: unknown): Uint8Array<ArrayBuffer> {
    if (typeof value === 'string') return encode(value, encoding);
    if (value instanceof ArrayBuffer) return new Uint8Array(value);
    if (ArrayBuffer.isView(value)) {
      return new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength);
    }
    throw new TypeError('The argument must be a string, an ArrayBuffer, a Buffer or a typed array');
  }

  class Buffer extends Uint8Array<ArrayBuffer> {
    static poolSize = 8192;

    constructor(content: ArrayBuffer | number, at?: number, length?: number) {
      super(content as ArrayBuffer, at, length);
    }

    static override from(value: unknown, more?: unknown, length?: number): Buffer {
      if (typeof value === 'string') return view(encode(value, more));
      if (value instanceof ArrayBuffer) {
        return view(new Uint8Array(value, Number(more ?? 0), length));
      }
      const data = (value as { type?: unknown; data?: unknown } | null | undefined) ?? undefined;
      if (data?.type === 'Buffer' && Array.isArray(data.data)) return Buffer.from(data.data);
      if (typeof value !== 'object' || value === null) {
        throw new TypeError('The first argument must be a string, a buffer or an array');
      }
      return view(Uint8Array.from(value as ArrayLike<number>));
    }

    static alloc(size: number, fill?: unknown, encoding?: unknown): Buffer {
      const made = new Buffer(size);
      return fill === undefined ? made : made.fill(fill as string, 0, size, encoding);
    }

    static allocUnsafe(size: number): Buffer {
      return new Buffer(size);
    }

    static allocUnsafeSlow(size: number): Buffer {
      return new Buffer(size);
    }

    static isBuffer(value: unknown): boolean {
      return value instanceof Buffer;
    }

    static isEncoding(name: unknown): boolean {
      const lower = String(name).toLowerCase();
      return encodings.includes(aliases[lower] ?? lower);
    }

    static byteLength(value: unknown, encoding?: unknown): number {
      return bytesOf(value, encoding).length;
    }

    static concat(list: readonly Uint8Array[], total?: number): Buffer {
      const length = total ?? list.reduce((sum, { length }) => sum + length, 0);
      const all = new Buffer(length);
      let at = 0;
      for (const part of list) {
        const fitting = part.subarray(0, Math.max(0, length - at));
        all.set(fitting, at);
        at += fitting.length;
      }
      return all;
    }

    static compare(one: Uint8Array, other: Uint8Array): number {
      const length = Math.min(one.length, other.length);
      for (let at = 0; at < length; at += 1) {
        const difference = (one[at] ?? 0) - (other[at] ?? 0);
        if (difference !== 0) return Math.sign(difference);
      }
      return Math.sign(one.length - other.length);
    }

    // biome-ignore lint/suspicious/noExplicitAny: the signature of Uint8Array is narrower
    override toString(encoding?: unknown, begin = 0, end = this.length): any {
      return decode(this.subarray(begin, end), encoding);
    }

    toJSON() {
      return { type: 'Buffer', data: Array.from(this) };
    }

    equals(other: Uint8Array): boolean {
      return Buffer.compare(this, other) === 0;
    }

    compare(other: Uint8Array): number {
      return Buffer.compare(this, other);
    }

    copy(target: Uint8Array, at = 0, begin = 0, end = this.length): number {
      const part = this.subarray(begin, Math.min(end, begin + target.length - at));
      target.set(part, at);
      return part.length;
    }

    write(text: string, at?: unknown, length?: unknown, encoding?: unknown): number {
      const given = [at, length, encoding].find((one) => typeof one === 'string');
      const offset = typeof at === 'number' ? at : 0;
      const room = Math.min(
        this.length - offset,
        typeof length === 'number' ? length : this.length,
      );
      const bytes = encode(text, given).subarray(0, room);
      this.set(bytes, offset);
      return bytes.length;
    }

    override fill(value: unknown, begin = 0, end = this.length, encoding?: unknown): this {
      if (typeof value === 'number') return super.fill(value, begin, end);
      const bytes = bytesOf(value, encoding);
      for (let at = begin; at < end; at += 1) this[at] = bytes[(at - begin) % bytes.length] ?? 0;
      return this;
    }

    override slice(begin?: number, end?: number): Buffer {
      return this.subarray(begin, end);
    }

    override subarray(begin?: number, end?: number): Buffer {
      return view(super.subarray(begin, end));
    }

    override indexOf(value: unknown, from = 0, encoding?: unknown): number {
      if (typeof value === 'number') return super.indexOf(value, from);
      const wanted = bytesOf(value, encoding);
      for (let at = from; at <= this.length - wanted.length; at += 1) {
        if (wanted.every((byte, index) => this[at + index] === byte)) return at;
      }
      return -1;
    }

    override includes(value: unknown, from?: number, encoding?: unknown): boolean {
      return this.indexOf(value, from, encoding) !== -1;
    }
  }

  function view(bytes: Uint8Array<ArrayBuffer>): Buffer {
    return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  const numbers = [
    ['UInt8', 'Uint8', 1],
    ['Int8', 'Int8', 1],
    ['UInt16', 'Uint16', 2],
    ['Int16', 'Int16', 2],
    ['UInt32', 'Uint32', 4],
    ['Int32', 'Int32', 4],
    ['BigUInt64', 'BigUint64', 8],
    ['BigInt64', 'BigInt64', 8],
    ['Float', 'Float32', 4],
    ['Double', 'Float64', 8],
  ] as const;
  const methods: Record<string, unknown> = {};
  for (const [name, kind, bytes] of numbers) {
    for (const end of bytes === 1 ? [''] : ['LE', 'BE']) {
      const read = function read(this: Buffer, at = 0) {
        const data = new DataView(this.buffer, this.byteOffset, this.byteLength);
        return data[`get${kind}`](at, end === 'LE');
      };
      const write = function write(this: Buffer, value: never, at = 0) {
        new DataView(this.buffer, this.byteOffset, this.byteLength)[`set${kind}`](
          at,
          value,
          end === 'LE',
        );
        return at + bytes;
      };
      for (const spelling of [name, name.replace('UInt', 'Uint')]) {
        methods[`read${spelling}${end}`] = read;
        methods[`write${spelling}${end}`] = write;
      }
    }
  }
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(Buffer.prototype, name, { value, writable: true, configurable: true });
  }
  return { Buffer: Buffer as unknown as BufferClass, encode, bytesOf };
}
