/** The format of an API key: the kind of its holder, 256 random bits, and a checksum against typos. */
import { hash } from 'node:crypto';
import type { Random } from '../base/random.ts';
import { checksumFits, checksumOf, randomBase62 } from './base62.ts';

export type ApiKeyEnv = 'test' | 'prod';
/** public, private, management, session */
export type ApiKeyKind = 'pub' | 'pvt' | 'mgt' | 'ses';

const operatorKeyLengthMin = 32;
const operatorKeyLengthMax = 200;

/** 62^43 is just above 2^256. */
const randomLength = 43;

const form = /^key_(?:test|prod)_(?:pub|pvt|mgt|ses)_[0-9A-Za-z]{49}$/;
const operatorForm = new RegExp(
  `^(?!key_)[A-Za-z0-9_.]{${operatorKeyLengthMin},${operatorKeyLengthMax}}$`,
);
export const operatorKeyForm =
  `must have ${operatorKeyLengthMin} to ${operatorKeyLengthMax} characters of A-Z a-z 0-9 _ . ` +
  'and must not begin with key_';

export interface NewApiKey {
  readonly env: ApiKeyEnv;
  readonly kind: ApiKeyKind;
  readonly random: Random;
}

/** A fresh key: `key_<env>_<kind>_<43 random base62 characters><6 base62 characters of checksum>`. */
export function newApiKey({ env, kind, random }: NewApiKey): string {
  const text = `key_${env}_${kind}_${randomBase62(random, randomLength)}`;
  return text + checksumOf(text);
}

/** True for a key that an operator may choose. */
export function isOperatorKey(text: string): boolean {
  return operatorForm.test(text);
}

/**
 * False if a string cannot be a key, so that a typo costs no look-up: its form or checksum is wrong. A key that an
 * operator supplied has no checksum and does not begin with `key_`.
 */
export function apiKeyPlausible(text: string): boolean {
  if (isOperatorKey(text)) return true;
  return form.test(text) && checksumFits(text);
}

/**
 * The only trace of a key that is stored: base64url of its SHA-256. Its 256 random bits need no salt
 * and no slow hash.
 */
export function hashApiKey(text: string): string {
  return hash('sha256', text, 'base64url');
}
