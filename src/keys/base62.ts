/** Strings of digits and letters for keys: random, and with a checksum that detects typos. */
import { type Random, randomBelow } from '../base/random.ts';
import { sha256 } from './digest.ts';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const checksumLength = 6;

/** Each character has almost six random bits. */
export function randomBase62(random: Random, length: number): string {
  let text = '';
  while (text.length < length) text += alphabet.charAt(randomBelow(random, alphabet.length));
  return text;
}

/** The first 48 bits of SHA-256 over the text, modulo 62^6, most significant digit first. */
export function checksumOf(text: string): string {
  let rest = sha256(text).readUIntBE(0, 6) % alphabet.length ** checksumLength;
  let digits = '';
  for (let index = 0; index < checksumLength; index++) {
    digits = alphabet.charAt(rest % alphabet.length) + digits;
    rest = Math.floor(rest / alphabet.length);
  }
  return digits;
}

/** True for a string that ends with the checksum of the rest. */
export function checksumFits(text: string): boolean {
  return text.endsWith(checksumOf(text.slice(0, -checksumLength)));
}
