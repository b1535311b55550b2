/** Keyrings with older and destroyed versions of keys, which the vault reads and does not make yet. */
import { createSecretKey } from 'node:crypto';
import type { Random } from '../../src/base/random.ts';
import { aeadKeyBytes } from '../../src/keys/aead.ts';
import { Keyring, type Purpose } from '../../src/keys/keyring.ts';

/** The keyring with a new active version of a purpose; the version before it only opens. */
export function rotate(keyring: Keyring, purpose: Purpose, random: Random): Keyring {
  const retired = keyring.versions[purpose].map((entry) =>
    entry.state === 'active' ? { ...entry, state: 'decrypt_only' as const } : entry,
  );
  const added = {
    version: retired.length + 1,
    state: 'active' as const,
    key: createSecretKey(random(aeadKeyBytes)),
  };
  return new Keyring({ ...keyring.versions, [purpose]: [...retired, added] });
}

/** What {@link destroy} removes. */
export interface RetiredKey {
  readonly purpose: Purpose;
  readonly version: number;
}

/** The keyring without the key of a version. What is still sealed under it is lost for ever. */
export function destroy(keyring: Keyring, { purpose, version }: RetiredKey): Keyring {
  const versions = keyring.versions[purpose].with(version - 1, {
    version,
    state: 'destroyed',
    key: undefined,
  });
  return new Keyring({ ...keyring.versions, [purpose]: versions });
}
