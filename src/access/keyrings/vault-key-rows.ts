/** The rows of `vault_keys` that hold the vault's own key: one for each root key generation that is in use. */
import type { Random } from '../../base/random.ts';
import { type Binding, sealText } from '../../keys/envelope.ts';
import { rootKeys } from '../../keys/keyring.ts';
import type { WrappingKey } from '../../keys/root/root-key.ts';
import { type KeyHeader, readStored, withHeader } from '../../keys/root/wrapped.ts';
import type { Row } from '../../store/tables.ts';

type VaultKeyRow = Row<'vault_keys'>;

/** The word that earlier releases sealed under the root key directly, to recognize it. */
export const formerCheckName = 'root_key.check';

/** The row of a rotation that is under way. */
export const rotationName = 'rotation.root';

const nameForm = /^root\.([1-9][0-9]{0,8})(\.previous)?$/;

/** @param isPrevious the key of a generation that a rotation is replacing, wrapped by the new root key. */
export function vaultKeyName(generation: number, isPrevious = false): string {
  return `root.${generation}${isPrevious ? '.previous' : ''}`;
}

/** Of any generation, current or previous. */
export function isVaultKeyName(name: string): boolean {
  return nameForm.test(name);
}

/** A row in its parts. */
export interface StoredVaultKey {
  readonly row: VaultKeyRow;
  readonly generation: number;
  /** `undefined` for a row that the vault did not write. */
  readonly header: KeyHeader | undefined;
  readonly sealed: Uint8Array;
}

/**
 * The newest generations first. The vault has one row of each kind at most, so that any other one was inserted by an
 * attacker: {@link firstProven} tells which.
 */
export interface StoredVaultKeys {
  /** Empty before the first start of a release that has them. */
  readonly current: readonly StoredVaultKey[];
  /** Empty unless a rotation is under way. */
  readonly previous: readonly StoredVaultKey[];
}

export function vaultKeysIn(rows: readonly VaultKeyRow[]): StoredVaultKeys {
  const keys = rows.flatMap((row) => {
    const [, digits, isPrevious] = nameForm.exec(row.name) ?? [];
    return digits === undefined
      ? []
      : [{ ...parse(row, Number(digits)), isPrevious: isPrevious !== undefined }];
  });
  const newestFirst = (isPrevious: boolean) =>
    keys
      .filter((one) => one.isPrevious === isPrevious)
      .sort((one, other) => other.generation - one.generation);
  return { current: newestFirst(false), previous: newestFirst(true) };
}

/**
 * The newest row that the root key proves. A failure to judge a newer one does not count: who can write a row that is
 * proven has the root key, and could write one of a newer generation as well.
 * @param prove gives `undefined` for a row that is not as the vault wrote it.
 * @throws the first error of `prove` where no row is proven.
 */
export async function firstProven<T>(
  rows: readonly StoredVaultKey[],
  prove: (row: StoredVaultKey) => Promise<T | undefined>,
): Promise<T | undefined> {
  const failures: unknown[] = [];
  for (const row of rows) {
    try {
      const found = await prove(row);
      if (found !== undefined) return found;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return undefined;
}

function parse(row: VaultKeyRow, generation: number): StoredVaultKey {
  const stored = readStored(row.private_key);
  const isOwn = stored?.header !== undefined;
  return {
    row,
    generation,
    header: isOwn ? stored.header : undefined,
    sealed: stored?.sealed ?? new Uint8Array(),
  };
}

/** The bytes of a row: the wrapped key, and the vault's id sealed under it, which proves the key. */
export function vaultKeyBytes(
  {
    name,
    key,
    header,
  }: { readonly name: string; readonly key: WrappingKey; readonly header: KeyHeader },
  random: Random,
): Uint8Array {
  return withHeader(header, sealText(rootKeys(key), vaultKeyBinding(name), header.vault, random));
}

export function vaultKeyBinding(name: string): Binding {
  return { tenant: '', id: name, field: 'private_key' };
}
