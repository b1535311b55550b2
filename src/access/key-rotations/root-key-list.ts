/** The root key among the listed keys: its generations, and the keyrings under each. */
import { formatTimestamp } from '../../base/dates.ts';
import { readStored } from '../../keys/root/wrapped.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { ProcessVaultKeys } from '../keyrings/vault-keys.ts';
import type { ListedKey } from './key-list.ts';

/** The generation in use, and during a rotation the one before. */
export async function listRootKeys({
  vaultKeys,
  tenants,
}: {
  readonly vaultKeys: Pick<ProcessVaultKeys, 'refresh'>;
  readonly tenants: Pick<Tenants, 'all'>;
}): Promise<readonly ListedKey[]> {
  const { current, previous } = await vaultKeys.refresh();
  const generations = (await tenants.all()).map(
    ({ keyring }) => readStored(keyring)?.header?.generation ?? 1,
  );
  const listed = [
    ...(previous ? [{ ...previous, state: 'decrypt_only' as const }] : []),
    ...(current ? [{ ...current, state: 'active' as const }] : []),
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
