/** Entity tags: each names one state of one resource. Only the vault can make one, and nothing can be read from it. */

import type { KeyObject } from 'node:crypto';
import { hmacSha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

const tagBytes = 15;

/**
 * The tag of a state, as callers get it.
 * @param state whose parts no other state has.
 */
export function entityTagOf(keyring: Keyring, state: readonly string[]): string {
  return tagUnder(keyring.secret('cursor'), state);
}

/** Its tag, and then those that callers got before the key was rotated. */
export function entityTagsOf(keyring: Keyring, state: readonly string[]): readonly string[] {
  return keyring.livingSecrets('cursor').map((key) => tagUnder(key, state));
}

function tagUnder(key: KeyObject, state: readonly string[]): string {
  // Cursors are proved with the same keys, over lists of two parts.
  const digest = hmacSha256(key, encodeParts(['entity tag', ...state]));
  return `"${digest.subarray(0, tagBytes).toString('base64url')}"`;
}
