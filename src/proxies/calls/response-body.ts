/** The body of a response for transforms: complete, decompressed, and decoded to a string. */
import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { type AttributeErrors, VaultError } from '../../base/errors.ts';

/** The limit before and after decompression. */
const transformedBytesMax = 5 * 1024 * 1024;

type HoldBytes = (bytes: number) => void;

type Decompress = (bytes: Buffer, limits: { readonly maxOutputLength: number }) => Promise<Buffer>;

/** A destination may ignore Accept-Encoding and compress anyway. */
const unpackers: Readonly<Record<string, Decompress>> = {
  gzip: promisify(gunzip),
  'x-gzip': promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
};

export interface ResponseReading {
  /** The values of Content-Encoding. */
  readonly encodings: readonly string[];
  /** The values of Content-Type. */
  readonly mediaTypes: readonly string[];
  readonly hold: HoldBytes;
}

/** In any other charset, the reader sees other characters than these bytes, so a mask would find no match. */
const charsetPattern = /^(?:utf-?8|(?:us-)?ascii|iso-8859-\d{1,2}|windows-125\d)$/i;

/** Whether text of these types has the same bytes for ASCII as UTF-8 has. */
export function hasKnownCharset(mediaTypes: readonly string[]): boolean {
  const charsets = mediaTypes.flatMap((type) =>
    Array.from(type.matchAll(/charset\s*=\s*["']?([^"';,\s]*)/gi), ([, charset = '']) => charset),
  );
  return charsets.every((charset) => charsetPattern.test(charset));
}

/**
 * @throws VaultError `bad_gateway` for a body that is too large or is not UTF-8 text; the error of the body;
 * `overloaded` from `hold`.
 */
export async function readResponseText(
  body: Readable,
  { encodings, mediaTypes, hold }: ResponseReading,
): Promise<string> {
  if (!hasKnownCharset(mediaTypes)) throw untransformable('it is not text in UTF-8');
  const sent = await collect(body, hold);
  const unpacked = await unpack(sent, encodings);
  if (unpacked !== sent) hold(unpacked.length);
  // In UTF-16 and UTF-32 every digit has a zero byte, and such bytes are valid UTF-8.
  if (!isUtf8(unpacked) || unpacked.includes(0)) {
    throw untransformable('it is not text in UTF-8');
  }
  return unpacked.toString('utf8');
}

async function collect(body: Readable, hold: HoldBytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > transformedBytesMax) throw tooLarge();
    hold(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

async function unpack(bytes: Buffer, encodings: readonly string[]): Promise<Buffer> {
  const names = encodings
    .flatMap((value) => value.split(','))
    .map((name) => name.trim().toLowerCase());
  const [encoding, ...others] = names.filter((name) => name !== 'identity' && name !== '');
  if (encoding === undefined || bytes.length === 0) return bytes;
  const unpacker = Object.hasOwn(unpackers, encoding) ? unpackers[encoding] : undefined;
  if (!unpacker || others.length > 0) throw untransformable('its encoding is not known');
  try {
    return await unpacker(bytes, { maxOutputLength: transformedBytesMax });
  } catch (error) {
    const isLarge = error instanceof RangeError;
    throw isLarge ? tooLarge() : untransformable('its encoding is damaged');
  }
}

function tooLarge(): VaultError {
  return untransformable(`it has more than ${transformedBytesMax} bytes`);
}

/** The destination was called, and may have acted. */
export function untransformable(reason: string, errors?: AttributeErrors): VaultError {
  return new VaultError('bad_gateway', {
    public: `The destination responded, but its response cannot be transformed: ${reason.replace(/\.$/, '')}.`,
    ...(errors && { errors }),
  });
}
