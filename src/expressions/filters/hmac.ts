/**
 * The filter hmac: a digest under a key that the caller writes into the expression. It protects
 * nothing of the vault's own, which is why it is not in src/keys.
 */
import { createHmac } from 'node:crypto';
import { Bytes } from '../evaluation/bytes.ts';

/** Digest names of node:crypto by the names the language uses. */
export const hmacAlgorithms = { 'sha-1': 'sha1', 'sha-256': 'sha256', 'sha-512': 'sha512' };

export function hmac(text: string, algorithm: string, key: string): Bytes {
  const digest = hmacAlgorithms[algorithm as keyof typeof hmacAlgorithms];
  return new Bytes(createHmac(digest, key).update(text, 'utf8').digest());
}
