/** Texts that somebody else made: files that were handed over, and responses. Nothing reads one without a limit. */
import { closeSync, createReadStream, fstatSync, openSync, readSync, type Stats } from 'node:fs';
import type { Readable } from 'node:stream';
import { systemCodeOf, VaultError } from '../../base/errors.ts';

/** Longer than any body or statement of a vault. */
export const givenBytesMax = 16 * 1024 * 1024;

const chunkBytes = 64 * 1024;

/** A file that somebody named cannot be read. */
class GivenFileError extends Error {
  override readonly name = 'GivenFileError';
}

const refusals: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'does not exist',
  EACCES: 'cannot be read: this user has no permission to read it',
};

/**
 * Opens a file that somebody named, which may be a pipe or a device.
 * @throws GivenFileError where there is none that can be read.
 */
export function openGivenFile(file: string): number {
  const descriptor = opened(file);
  if (!fstatSync(descriptor).isDirectory()) return descriptor;
  closeSync(descriptor);
  throw new GivenFileError(`${file} is a directory. Name a file.`);
}

function opened(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (error) {
    const code = systemCodeOf(error) ?? 'unknown';
    throw new GivenFileError(`The file ${file} ${refusals[code] ?? `cannot be read: ${code}`}.`);
  }
}

/** The bytes of a file of any length. @throws GivenFileError as {@link openGivenFile} does. */
export function streamGivenFile(file: string, highWaterMark?: number): Readable {
  return createReadStream(file, { fd: openGivenFile(file), highWaterMark });
}

export interface GivenFileRules {
  readonly bytesMax?: number;
  /** Where no text is a text. */
  readonly mayBeEmpty?: boolean;
  /** Throws for a file that is not to be read. */
  readonly require?: (stats: Stats) => void;
}

/**
 * The text of a file, which may be a pipe or a device.
 * @throws VaultError `body_too_large`. GivenFileError as {@link openGivenFile} does, and for a file that is empty.
 */
export function readGivenFile(
  file: string,
  { bytesMax = givenBytesMax, mayBeEmpty = false, require }: GivenFileRules = {},
): string {
  const descriptor = openGivenFile(file);
  try {
    require?.(fstatSync(descriptor));
    const chunks = createChunks(file, bytesMax);
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const bytes = readSync(descriptor, chunk);
      if (bytes === 0) break;
      chunks.add(chunk.subarray(0, bytes));
    }
    const text = chunks.joined();
    if (text !== '' || mayBeEmpty) return text;
    throw new GivenFileError(`The file ${file} is empty.`);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The text of a stream: standard input, or the body of a response.
 * @param name for the message.
 * @throws VaultError `body_too_large`
 */
export async function readGivenStream(
  name: string,
  stream: AsyncIterable<unknown> | null,
  bytesMax = givenBytesMax,
): Promise<string> {
  const chunks = createChunks(name, bytesMax);
  for await (const chunk of stream ?? []) {
    chunks.add(typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array));
  }
  return chunks.joined();
}

function createChunks(name: string, bytesMax: number) {
  const chunks: Uint8Array[] = [];
  let sum = 0;
  return {
    add: (chunk: Uint8Array) => {
      sum += chunk.length;
      if (sum > bytesMax) {
        const message = `${name} has more than ${bytesMax} bytes and is not read.`;
        throw new VaultError('body_too_large', { public: message });
      }
      chunks.push(chunk);
    },
    joined: () => Buffer.concat(chunks).toString('utf8'),
  };
}
