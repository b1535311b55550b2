/** The one way to join texts before they are authenticated: no two lists of parts share an encoding. */

const prefixBytes = 4;

/**
 * Each part as its length in bytes (32 bits, big-endian) followed by its UTF-16LE code units. UTF-16
 * rather than UTF-8, because a JavaScript string may hold a lone surrogate: UTF-8 turns each of those
 * into U+FFFD, and two different values would share a fingerprint.
 */
export function encodeParts(parts: readonly string[]): Buffer {
  let length = 0;
  for (const part of parts) length += prefixBytes + part.length * 2;
  const encoded = Buffer.allocUnsafe(length);
  let end = 0;
  for (const part of parts) {
    end = encoded.writeUInt32BE(part.length * 2, end);
    end += encoded.write(part, end, 'utf16le');
  }
  return encoded;
}
