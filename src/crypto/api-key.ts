/** The text of an API key: who may hold it, 256 random bits, and a checksum against typos. */
import { hash } from 'node:crypto';
import { type Random, randomBelow } from '../lib/random.ts';
import { sha256 } from './digest.ts';

export type ApiKeyEnv = 'test' | 'prod';
/** public, private, management, session */
export type ApiKeyKind = 'pub' | 'pvt' | 'mgt' | 'ses';

const operatorKeyLengthMin = 32;
const operatorKeyLengthMax = 200;

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** 62^43 is just above 2^256. */
const randomLength = 43;
const checksumLength = 6;

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
  let text = `key_${env}_${kind}_`;
  for (let index = 0; index < randomLength; index++) {
    text += alphabet.charAt(randomBelow(random, alphabet.length));
  }
  return text + checksumOf(text);
}

/** True for a key that an operator may choose. */
export function isOperatorKey(text: string): boolean {
  return operatorForm.test(text);
}

/**
 * False when a text cannot be a key, so that a typo costs no look-up: the form or the checksum is
 * wrong. A key that an operator supplied has no checksum and does not begin with `key_`.
 */
export function apiKeyPlausible(text: string): boolean {
  if (isOperatorKey(text)) return true;
  if (!form.test(text)) return false;
  return text.endsWith(checksumOf(text.slice(0, -checksumLength)));
}

/**
 * The only trace of a key that is stored: base64url of its SHA-256. Its 256 random bits need no salt
 * and no slow hash.
 */
export function hashApiKey(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The first 48 bits of SHA-256 over the text before it, modulo 62^6, most significant digit first. */
function checksumOf(text: string): string {
  let rest = sha256(text).readUIntBE(0, 6) % alphabet.length ** checksumLength;
  let digits = '';
  for (let index = 0; index < checksumLength; index++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}
