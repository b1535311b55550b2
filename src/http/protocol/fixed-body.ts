/** A response body that stays the same while the process runs, with its compressed forms. */
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** Below that, compression saves no packet. */
const compressedBytesMin = 1_024;

/** The highest quality takes some 400 ms for the description of the API, where 9 takes 20 ms and 8 % more bytes. */
const largeBytesMin = 100_000;
const largeBrotliQuality = 9;

const compressions = {
  br: (bytes: Uint8Array) =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        [constants.BROTLI_PARAM_QUALITY]:
          bytes.length >= largeBytesMin ? largeBrotliQuality : constants.BROTLI_MAX_QUALITY,
      },
    }),
  gzip: (bytes: Uint8Array) => promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }),
};

/** In the order in which the vault prefers them. */
const encodings = ['br', 'gzip'] as const;
type Compression = (typeof encodings)[number];

export interface EncodedBody {
  readonly bytes: Uint8Array;
  /** A strong tag: each encoding has its own (RFC 9110, section 8.8.1). */
  readonly etag: string;
  readonly encoding: Compression | undefined;
}

/** Each form is made at the first request that accepts it, outside the event loop, and only once. */
export class FixedBody {
  readonly bytes: Uint8Array;
  readonly #tag: string;
  readonly #compressed = new Map<Compression, Promise<Uint8Array>>();

  /** @param tag changes with the bytes; of the characters that an entity tag may have. */
  constructor(bytes: Uint8Array, tag: string) {
    this.bytes = bytes;
    this.#tag = tag;
  }

  /** @param accepted the header `Accept-Encoding`. */
  async encodedFor(accepted: string | undefined): Promise<EncodedBody> {
    const { bytes } = this;
    const isLarge = bytes.length >= compressedBytesMin;
    const encoding = isLarge ? encodings.find((one) => accepts(accepted, one)) : undefined;
    if (encoding === undefined) return { bytes, etag: `"${this.#tag}"`, encoding };
    const etag = `"${this.#tag}-${encoding}"`;
    return { bytes: await this.#compressedAs(encoding), etag, encoding };
  }

  #compressedAs(encoding: Compression): Promise<Uint8Array> {
    const known = this.#compressed.get(encoding);
    if (known) return known;
    const made = compressions[encoding](this.bytes);
    this.#compressed.set(encoding, made);
    return made;
  }
}

/** RFC 9110, section 12.5.3; a wildcard is not followed, which only costs bytes. */
function accepts(accepted = '', encoding: Compression): boolean {
  return accepted.split(',').some((one) => {
    const [name = '', weight = ''] = one.split(';');
    return name.trim().toLowerCase() === encoding && !/^\s*q=0(?:\.0*)?\s*$/i.test(weight);
  });
}
