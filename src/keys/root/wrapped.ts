/** The stored form of what a wrapped key seals: a header that names the key, and the sealed value after it. */
import type { WrappedKey } from './root-key.ts';

/**
 * The header. It is not secret, and it is not authenticated by itself: a key that opens the sealed value was unwrapped
 * with the vault and the tenant as its context.
 */
export interface KeyHeader extends WrappedKey {
  /** The id of the vault. */
  readonly vault: string;
  /** How many times the root key of the vault was rotated, from 1. */
  readonly generation: number;
  /** The id of the keyring that is sealed; absent in rows of earlier releases, and where no keyring is. */
  readonly keyring?: string;
}

/** A stored value in its two parts. */
export interface StoredForm {
  /** `undefined` in the first form, which is sealed under the root key directly. */
  readonly header: KeyHeader | undefined;
  readonly sealed: Uint8Array;
}

/** The first byte. The envelope, which the first form consists of, begins with 1. */
const formatVersion = 2;
const headerStart = 3;

/** Format version (1) ‖ length of the header (2, big-endian) ‖ header, a JSON array ‖ sealed value. */
export function withHeader(header: KeyHeader, sealed: Uint8Array): Uint8Array {
  const { vault, generation, source, keyId, version, blob, keyring } = header;
  const encoded = Buffer.from(blob).toString('base64');
  const parts = [vault, generation, source, keyId, version, encoded];
  const text = Buffer.from(JSON.stringify(keyring === undefined ? parts : [...parts, keyring]));
  const start = Buffer.alloc(headerStart);
  start[0] = formatVersion;
  start.writeUInt16BE(text.length, 1);
  return Buffer.concat([start, text, sealed]);
}

/** `undefined` for bytes of neither form. */
export function readStored(bytes: Uint8Array): StoredForm | undefined {
  if (bytes[0] === 1) return { header: undefined, sealed: bytes };
  if (bytes[0] !== formatVersion || bytes.length < headerStart) return undefined;
  const end = headerStart + Buffer.from(bytes.subarray(1, headerStart)).readUInt16BE();
  if (bytes.length < end) return undefined;
  const header = parseHeader(Buffer.from(bytes.subarray(headerStart, end)).toString('utf8'));
  return header && { header, sealed: bytes.subarray(end) };
}

function parseHeader(text: string): KeyHeader | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(parsed)) return undefined;
  const [vault, generation, source, keyId, version, blob, keyring] = parsed as unknown[];
  const texts = [vault, source, keyId, blob];
  const numbers = [generation, version];
  const isForm =
    texts.every((one) => typeof one === 'string') &&
    numbers.every((one) => Number.isSafeInteger(one));
  if (!isForm) return undefined;
  return {
    vault: vault as string,
    generation: generation as number,
    source: source as string,
    keyId: keyId as string,
    version: version as number,
    blob: Buffer.from(blob as string, 'base64'),
    ...(typeof keyring === 'string' && { keyring }),
  };
}
