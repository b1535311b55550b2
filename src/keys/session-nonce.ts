/** The one-time code that authorizes a session: 16 random bytes in base58. */
import { base58 } from '@scure/base';
import type { Random } from '../base/random.ts';
import { sha256 } from './digest.ts';

const nonceBytes = 16;
const nonceLength = 22;

/** Three draws in a hundred begin with a zero and would be shorter; they are drawn again. */
export function newSessionNonce(random: Random): string {
  for (;;) {
    const nonce = base58.encode(random(nonceBytes));
    if (nonce.length === nonceLength) return nonce;
  }
}

/** The only trace of a nonce that is stored. */
export function hashSessionNonce(nonce: string): string {
  return sha256(nonce).toString('base64url');
}
