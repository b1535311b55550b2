/** Where the root key is stored: next to the database of a production tenant it protects little. */
import { existsSync, realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { anyProductionTenant } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';

export interface RootKeyPlace {
  /** Which source it comes from. */
  readonly rootKey: { readonly source: string };
  readonly rootKeyFile: string;
  /** Where the embedded engine has its database. */
  readonly dataDir: string;
}

/** True when a copy of the data directory holds a production tenant's values and the key to them. */
export async function isRootKeyBesideProduction(
  store: Pick<Store, 'engine' | 'select'>,
  { rootKey, rootKeyFile, dataDir }: RootKeyPlace,
): Promise<boolean> {
  if (store.engine !== 'sqlite' || rootKey.source !== 'file') return false;
  if (!existsSync(rootKeyFile)) return false;
  // Links are followed: what counts is where the bytes are.
  if (!realpathSync(rootKeyFile).startsWith(`${realpathSync(dataDir)}${sep}`)) return false;
  return (await store.select(anyProductionTenant)).length > 0;
}
