/** The root key among the listed keys: its generations, and the keyrings under each. */
import { formatTimestamp } from '../../base/dates.ts';
import { readStored } from '../../keys/root/wrapped.ts';
import type { Tenants } from '../../rules/tenant.ts';
import { allVaultKeys } from '../../store/queries/vault-keys.ts';
import type { Store } from '../../store/store.ts';
import { vaultKeysIn } from '../keyrings/vault-key-rows.ts';
import type { ListedKey } from './key-list.ts';

/** The generation in use, and during a rotation the one before. */
export async function listRootKeys({
  store,
  tenants,
}: {
  readonly store: Pick<Store, 'select'>;
  readonly tenants: Pick<Tenants, 'all'>;
}): Promise<readonly ListedKey[]> {
  const { current, previous } = vaultKeysIn(await store.select(allVaultKeys));
  const generations = (await tenants.all()).map(
    ({ keyring }) => readStored(keyring)?.header?.generation ?? 1,
  );
  const listed = [
    ...(previous ? [{ stored: previous, state: 'decrypt_only' as const }] : []),
    ...(current ? [{ stored: current, state: 'active' as const }] : []),
  ];
  return listed.map(({ stored: { generation, row }, state }) => ({
    purpose: 'root',
    tenant_id: null,
    version: generation,
    state,
    rows: generations.filter((one) => one === generation).length,
    created_at: formatTimestamp(row.created_at),
  }));
}
