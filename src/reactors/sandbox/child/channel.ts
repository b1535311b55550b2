/** The child's end of the channel: standard input and output, read and written without an event loop. */
import { readSync, writeSync } from 'node:fs';

const input = 0;
const output = 1;

/** `undefined` at the end of the input. */
export function readFully(length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  let at = 0;
  while (at < length) {
    const read = readSync(input, bytes, at, length - at, null);
    if (read === 0) return undefined;
    at += read;
  }
  return bytes;
}

export function writeFully(bytes: Buffer): void {
  let at = 0;
  while (at < bytes.length) at += writeSync(output, bytes, at);
}
