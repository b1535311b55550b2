/** The text of a proxy's key: random letters and digits, and a checksum against typos. */
import { hash } from 'node:crypto';
import type { Random } from '../lib/random.ts';
import { checksumFits, checksumOf, randomBase62 } from './base62.ts';

/** Some 190 random bits. */
const randomLength = 32;

const form = /^[0-9A-Za-z]{38}$/;

/** 38 letters and digits, of which the last six are a checksum. */
export function newProxyKey(random: Random): string {
  const text = randomBase62(random, randomLength);
  return text + checksumOf(text);
}

/** False when a text cannot be a proxy's key, so that a typo costs no look-up. */
export function proxyKeyPlausible(text: string): boolean {
  return form.test(text) && checksumFits(text);
}

/** By which a proxy is found: base64url of the key's SHA-256. Its random bits need no salt. */
export function hashProxyKey(text: string): string {
  return hash('sha256', text, 'base64url');
}
