/** Steps of a rotation, as tests take them. */
import type { Instant } from '../../src/base/clock.ts';
import type { Random } from '../../src/base/random.ts';
import type { Keyring, Purpose } from '../../src/keys/keyring.ts';

const now = Date.UTC(2026, 10, 24) as Instant;

/** The keyring with a new active version of a purpose; the version before it only opens. */
export function rotate(keyring: Keyring, purpose: Purpose, random: Random): Keyring {
  return keyring.withVersion(purpose, { random, now }).withNewestActive(purpose);
}

/** What {@link destroy} removes. */
export interface RetiredKey {
  readonly purpose: Purpose;
  readonly version: number;
}

/** The keyring without the key of a version. What is still sealed under it is lost for ever. */
export function destroy(keyring: Keyring, { purpose, version }: RetiredKey): Keyring {
  return keyring.withDestroyed(purpose, version, now);
}
