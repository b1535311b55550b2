/** Checks that the root key belongs to this database: one sealed row proves it, however many tenants there are. */

import type { Clock } from '../../base/clock.ts';
import { isIntegrityError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { sealsText, sealText } from '../../keys/envelope.ts';
import { requireKeyring, rootKeys } from '../../keys/keyring.ts';
import type { LocalRootKey } from '../../keys/root-key.ts';
import { isTombstone } from '../../keys/tombstone.ts';
import { anyTenant, tenantsAfter } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import { type Unproven, unverifiedColumns } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import { tombstoneOf } from './tenants.ts';

const name = 'root_key.check';

/** It belongs to no tenant. */
const binding = { tenant: '', id: name, field: 'private_key' };

const text = 'strongroom';

/**
 * Tenants that are tried if the row does not prove the key: an attacker who can write to one row of the database must
 * not be able to prevent the start.
 */
const tenantsTried = 8;

export interface RootKeyChecking {
  readonly store: Store;
  readonly rootKey: LocalRootKey;
  readonly clock: Clock;
  readonly random: Random;
}

/** True of a store that nothing was sealed in yet. */
export async function hasNoRootKey(store: Store): Promise<boolean> {
  if (await store.get('vault_keys', { name })) return false;
  return (await store.select(anyTenant)).length === 0;
}

/** `altered`: a tenant proves the root key, and the row, which the vault did not write, does not. */
export type RootKeyProof = 'proven' | 'altered' | 'foreign';

/**
 * Writes the row if there is none yet: in an empty database, to which this root key then belongs. Several servers
 * may start at once.
 */
export async function checkRootKey({
  store,
  rootKey,
  clock,
  random,
}: RootKeyChecking): Promise<RootKeyProof> {
  const keys = rootKeys(rootKey.key);
  const isCheck = ({ private_key }: Row<'vault_keys'>) =>
    ifIntact(() => sealsText(keys, binding, { sealed: private_key, text }));

  for (;;) {
    const row = await store.get('vault_keys', { name });
    if (row && isCheck(row)) return 'proven';
    const some = await store.select(tenantsAfter(undefined, tenantsTried));
    const isProven = some.some((tenant) => isOfRootKey(rootKey, tenant));
    if (row) return isProven ? 'altered' : 'foreign';
    if (some.length > 0 && !isProven) return 'foreign';
    const private_key = sealText(keys, binding, text, random);
    // With a conflict another server has written it, perhaps under another root key.
    await store.record({
      insert: { vault_keys: [{ name, private_key, created_at: clock.now() }] },
    });
  }
}

/** Of a deleted tenant the keyring is gone, and its mark is sealed instead. */
function isOfRootKey({ key }: LocalRootKey, stored: Unproven<'tenants'>): boolean {
  // No keyring of a tenant is opened here: what the root key sealed in the row proves the root key.
  const row = unverifiedColumns(stored);
  return ifIntact(() => {
    if (row.deleted_at !== null) return isTombstone(key, tombstoneOf(row), row.proof);
    requireKeyring(key, { tenant: row.tenant_id, wrapped: row.keyring });
    return true;
  });
}

function ifIntact(test: () => boolean): boolean {
  try {
    return test();
  } catch (error) {
    if (isIntegrityError(error)) return false;
    throw error;
  }
}
