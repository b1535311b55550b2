/** The text of a proxy's key: random letters and digits, and a checksum against typos. */
import { hash } from 'node:crypto';
import type { Random } from '../base/random.ts';
import { checksumFits, checksumOf, randomBase62 } from './base62.ts';

/** Some 160 random bits: a letter is twice as likely as a digit. */
const randomLength = 32;

/** Keys that were made before proxies had names hold capital letters as well. */
const form = /^[0-9A-Za-z]{38}$/;

/**
 * 38 lower-case letters and digits, of which the last six are a checksum. The key is also a label of the host
 * that the proxy has by itself, and DNS does not tell cases apart.
 */
export function newProxyKey(random: Random): string {
  const text = randomBase62(random, randomLength).toLowerCase();
  return text + checksumOf(text).toLowerCase();
}

/** False when a text cannot be a proxy's key, so that a typo costs no look-up. */
export function proxyKeyPlausible(text: string): boolean {
  return form.test(text) && (hasLowerChecksum(text) || checksumFits(text));
}

function hasLowerChecksum(text: string): boolean {
  return text.slice(randomLength) === checksumOf(text.slice(0, randomLength)).toLowerCase();
}

/** The hash that finds a proxy: base64url of the key's SHA-256. Its random bits need no salt. */
export function hashProxyKey(text: string): string {
  return hash('sha256', text, 'base64url');
}
