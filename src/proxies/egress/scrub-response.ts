/** The response of a destination without the values that were sent to it. */
import { pipeline, type Readable, Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from 'node:zlib';
import { VaultError } from '../../base/errors.ts';
import type { ProxyResponse } from '../calls/proxy-call.ts';
import { hasKnownCharset } from '../calls/response-body.ts';
import { valuesOf, withoutHeaders } from '../calls/transform-response.ts';
import { Scrub, ScrubFrames, scrubTexts } from './scrub.ts';
import { type Pay, patternsOf } from './value-patterns.ts';
import { CheckedFrames } from './websocket-frames.ts';

interface Unpacker extends Transform {
  /** That were unpacked so far. */
  readonly bytesWritten: number;
}

/** A destination may compress although it was asked not to. */
const unpackers: Readonly<Record<string, () => Unpacker>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** Of bytes that scrubbing changes. What they say of the bytes before would tell the value to those who guess it. */
const digests = [
  ...['content-md5', 'digest', 'content-digest', 'repr-digest', 'etag'],
  ...['crc32', 'crc32c', 'crc64nvme', 'sha1', 'sha256'].map((name) => `x-amz-checksum-${name}`),
  ...['x-goog-hash', 'x-ms-content-crc64', 'x-ms-blob-content-md5'],
];

/** Types of which each line is a message. */
const linesForm =
  /^\s*(?:text\/event-stream|application\/(?:x-)?(?:ndjson|jsonl|jsonlines|stream\+json))\b/i;

export interface SentValues {
  readonly values: Iterable<string>;
  /** The request as its program wrote it. */
  readonly known: string;
  readonly pay: Pay;
}

/**
 * @param onEnd called once, with how many values were found, when the body has ended or was cut.
 * @throws VaultError `bad_gateway` for a body whose encoding or charset is unknown, which is then not read.
 */
export async function scrubResponse(
  response: ProxyResponse,
  { values, known, pay }: SentValues,
  onEnd: (found: number) => void,
): Promise<ProxyResponse> {
  const unpack = unpackerOf(response);
  const patterns = await patternsOf(values, { known, pay });
  let found = 0;
  const onFound = (count: number) => {
    found += count;
  };
  const scrub = (texts: readonly string[]) => scrubTexts({ patterns, pay, onFound }, texts);
  let trailers: readonly string[] = [];
  const body = new Scrub({
    patterns,
    pay,
    onFound,
    onRead: async () => {
      trailers = await scrub(withoutHeaders(response.trailers(), digests));
    },
    isOfLines: valuesOf(response.headers, 'content-type').some((type) => linesForm.test(type)),
  });
  const dropped = unpack ? [...digests, 'content-encoding', 'content-length'] : digests;
  const headers = await scrub(withoutHeaders(response.headers, dropped));
  const stages: [Readable, ...Transform[], Transform] = unpack
    ? [response.body, unpack, boundedUnpacking(unpack), body]
    : [response.body, body];
  pipeline(stages, () => onEnd(found));
  return { ...response, headers, body, trailers: () => trailers };
}

/**
 * An accepted handshake and the messages that follow it, of which none is compressed.
 * @param onEnd called once, with how many values were found, when the connection has ended.
 */
export async function scrubMessages(
  response: ProxyResponse,
  { values, known, pay }: SentValues,
  onEnd: (found: number) => void,
): Promise<ProxyResponse> {
  let found = 0;
  const onFound = (count: number) => {
    found += count;
  };
  const sent = [...values];
  const scrubbing = { patterns: await patternsOf(sent, { known, pay }), pay, onFound };
  const headers = await scrubTexts(scrubbing, withoutHeaders(response.headers, digests));
  const body = sent.length > 0 ? new ScrubFrames(scrubbing) : new CheckedFrames('server', pay);
  pipeline(response.body, body, () => onEnd(found));
  return { ...response, headers, body };
}

/** Far more than texts and logs have. What follows of a few bytes costs the destination nothing. */
const unpackedRatioMax = 200;
const unpackedBytesFree = 1_048_576;

/** Fails once the bytes that come out are many times those that went in. */
function boundedUnpacking(unpack: Unpacker): Transform {
  let unpacked = 0;
  return new Transform({
    transform: (chunk: Buffer, _, done) => {
      unpacked += chunk.length;
      if (unpacked <= unpackedBytesFree + unpack.bytesWritten * unpackedRatioMax) done(null, chunk);
      else done(new Error('the response unpacks to too many times its bytes'));
    },
  });
}

function unpackerOf({ headers, body }: ProxyResponse): Unpacker | undefined {
  if (!hasKnownCharset(valuesOf(headers, 'content-type'))) throw unreadable(body, 'a charset');
  const codings = valuesOf(headers, 'content-encoding')
    .flatMap((value) => value.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  const [coding, ...others] = codings;
  if (coding === undefined) return undefined;
  const unpack = Object.hasOwn(unpackers, coding) ? unpackers[coding] : undefined;
  if (unpack && others.length === 0) return unpack();
  throw unreadable(body, 'an encoding');
}

function unreadable(body: Readable, what: string): VaultError {
  body.destroy();
  return new VaultError('bad_gateway', {
    public: `The destination responded in ${what} in which the vault cannot look for values.`,
  });
}
