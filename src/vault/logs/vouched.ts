/** A store whose log says of rows only what the vault vouches for, under the key of the tenant. */
import { proveRow, rowProven } from '../../crypto/row-proof.ts';
import { VaultError } from '../../lib/errors.ts';
import type { ChainedEntry } from '../../lib/log-chain/entries.ts';
import type { Keys } from '../../rules/proven-row.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { Change } from '../../store/change.ts';
import { changesExplainedRows, vouchedPartsOf } from '../../store/row-states.ts';
import type { Store } from '../../store/store.ts';

const table = 'log entry';

/**
 * The chain of hashes needs no key, so whoever can write to the database can add an entry that explains
 * what they did to a row. Without the tenant's key they cannot add one that is vouched for.
 */
export function vouching(store: Store, tenants: Tenants): Store {
  async function keysFor(change: Change): Promise<Keys> {
    const made = change.insert?.tenants?.[0];
    if (made) return { keyring: tenants.keyringOf(made) };
    const tenant = await tenants.find(change.entries[0].tenant_id);
    if (tenant) return tenant;
    throw new VaultError('unauthenticated', {
      public: 'A valid API key is required.',
      internal: 'the tenant was deleted or altered before its change was committed',
    });
  }

  return {
    ...store,
    commit: async (change) => {
      if (!changesExplainedRows(change)) return store.commit(change);
      const { keyring } = await keysFor(change);
      return store.commit({ ...change, vouch: (text) => proveRow(keyring, table, text) });
    },
  };
}

/** What is unique to the entry, when the vault wrote what it says of rows; else `undefined`. */
export function voucherOf({ keyring }: Keys, entry: ChainedEntry): string | undefined {
  const { row, proof } = vouchedPartsOf(entry);
  return proof !== undefined && rowProven(keyring, { table, row, proof }) ? proof : undefined;
}
