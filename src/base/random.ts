/** Randomness as a parameter, from the operating system's generator. */
import { randomFillSync } from 'node:crypto';

/** Returns `length` fresh random bytes, in a buffer that is not shared. */
export type Random = (length: number) => Buffer;

/** Bytes per refill: one system call serves several hundred nonces and ids. */
const poolBytes = 16_384;

/**
 * Cryptographic random bytes from a refilled pool. Each byte is returned once. The slice keeps its own pool alive, so
 * a later refill cannot overwrite it.
 */
export function pooledRandom(): Random {
  let pool = Buffer.alloc(0);
  let used = 0;
  return (length) => {
    if (length > poolBytes) return randomFillSync(Buffer.allocUnsafeSlow(length));
    if (used + length > pool.length) {
      pool = randomFillSync(Buffer.allocUnsafeSlow(poolBytes));
      used = 0;
    }
    const bytes = pool.subarray(used, used + length);
    used += length;
    return bytes;
  };
}

/** A uniform whole number from 0 up to but excluding `bound`, without modulo bias. */
export function randomBelow(random: Random, bound: number): number {
  const limit = 0x1_0000_0000 - (0x1_0000_0000 % bound);
  for (;;) {
    const value = random(4).readUInt32BE(0);
    if (value < limit) return value % bound;
  }
}
