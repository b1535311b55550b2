/** Keyed digests by which equal values find each other, and the plain hash for what is already random. */
import { createHmac, hash, type KeyObject } from 'node:crypto';
import { base58 } from '@scure/base';
import { encodeParts } from './parts.ts';

const searchTermBytes = 16;

/**
 * The fingerprint of a value of a token type: base58 of HMAC-SHA-256. Equal values of one type and
 * tenant have equal fingerprints; without the key nobody can try candidates (PCI DSS 3.5.1.1).
 */
export function fingerprintOf(key: KeyObject, type: string, value: string): string {
  return base58.encode(hmac(key, [type, value]));
}

/** The term under which a value of a field is found: HMAC-SHA-256 cut to 16 bytes. */
export function searchTermOf(key: KeyObject, field: string, value: string): Uint8Array {
  // A copy, because a view would keep and, posted to another thread, carry the whole digest.
  return new Uint8Array(hmac(key, [field, value]).subarray(0, searchTermBytes));
}

/** SHA-256 of a text's UTF-8 bytes. Only for texts that cannot be guessed, such as API keys. */
export function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/**
 * What is stored of an idempotency key, base64url. Whoever sends the key gets the stored response, so
 * nobody who can only read the database may find it, not even by trying candidates.
 */
export function idempotencyKeyDigestOf(key: KeyObject, parts: readonly string[]): string {
  return hmac(key, ['idempotency key', ...parts]).toString('base64url');
}

function hmac(key: KeyObject, parts: readonly string[]): Buffer {
  return createHmac('sha256', key).update(encodeParts(parts)).digest();
}
