/** Texts that somebody else made: files that were handed over, and responses. Nothing reads one without a limit. */
import { closeSync, openSync, readSync } from 'node:fs';
import { VaultError } from '../../base/errors.ts';

/** Longer than any body or statement of a vault. */
export const givenBytesMax = 16 * 1024 * 1024;

const chunkBytes = 64 * 1024;

/**
 * The text of a file, which may be a pipe or a device.
 * @throws VaultError `body_too_large`, and what the system says of the file.
 */
export function readGivenFile(file: string, bytesMax = givenBytesMax): string {
  const descriptor = openSync(file, 'r');
  try {
    const chunks = createChunks(file, bytesMax);
    for (;;) {
      const chunk = Buffer.allocUnsafe(chunkBytes);
      const bytes = readSync(descriptor, chunk);
      if (bytes === 0) return chunks.joined();
      chunks.add(chunk.subarray(0, bytes));
    }
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
