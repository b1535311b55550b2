/** Entity tags: each names one state of one resource. Only the vault can make one, and nothing can be read from it. */

import { hmacSha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

const tagBytes = 15;

/** @param state whose parts no other state has. */
export function entityTagOf(keyring: Keyring, state: readonly string[]): string {
  // Cursors are proved with the same key, over lists of two parts.
  const digest = hmacSha256(keyring.secret('cursor'), encodeParts(['entity tag', ...state]));
  return `"${digest.subarray(0, tagBytes).toString('base64url')}"`;
}
