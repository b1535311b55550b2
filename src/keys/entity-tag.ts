/** Entity tags: each names one state of one resource. Only the vault can make one, and nothing can be read from it. */

import { hmacSha256 } from './digest.ts';
import type { Keyring } from './keyring.ts';
import { encodeParts } from './parts.ts';

const tagBytes = 15;

/**
 * The tags of a state: the one that callers get first, and then those that they got before the key was rotated.
 * @param state whose parts no other state has.
 */
export function entityTagsOf(keyring: Keyring, state: readonly string[]): readonly string[] {
  // Cursors are proved with the same keys, over lists of two parts.
  const message = encodeParts(['entity tag', ...state]);
  return keyring.livingSecrets('cursor').map((key) => {
    const digest = hmacSha256(key, message).subarray(0, tagBytes);
    return `"${digest.toString('base64url')}"`;
  });
}
