/** What is asked of stored proxies. */
import { invalid, VaultError } from '../../lib/errors.ts';
import { type ProxyId, parseUuid, type TenantId } from '../../lib/ids.ts';
import { firstTenant } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { addressesOf, addressRow, hostAddress } from './row.ts';

/** @throws VaultError `not_found`, alike for one that is missing and for another tenant's. */
export async function proxyOf(store: Store, tenant: TenantId, id: string): Promise<Row<'proxies'>> {
  const proxy_id = parseUuid<ProxyId>(id);
  const row = proxy_id && (await store.get('proxies', { tenant_id: tenant, proxy_id }));
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no proxy with this id.' });
}

/**
 * A host of the vault itself as a proxy's would send that tenant what all others ask of the vault. Where the vault
 * does not know its host, only its first tenant, which is the operator's, can give a proxy a host.
 * @throws VaultError `validation_failed` for other tenants.
 */
export async function requireHostAllowed(
  store: Store,
  ownHost: string | undefined,
  { tenant_id, host }: Pick<Row<'proxies'>, 'tenant_id' | 'host'>,
): Promise<void> {
  if (host === null || ownHost !== undefined) return;
  const [first] = await store.select(firstTenant);
  if (first?.tenant_id === tenant_id) return;
  throw invalid('proxy_host', 'cannot be set before the operator has set STRONGROOM_PUBLIC_URL');
}

/** The rows of the directory that a new proxy needs, or one that gets another host. */
export async function addressesToChange(
  store: Store,
  { before, after }: { readonly before?: Row<'proxies'>; readonly after: Row<'proxies'> },
) {
  if (before?.host === after.host) return {};
  const isNew = before === undefined;
  const added = isNew ? addressesOf(after) : after.host === null ? [] : [hostAddress(after.host)];
  const dropped = typeof before?.host === 'string' ? await ownAddress(store, before) : [];
  if (after.host !== null) await requireFree(store, hostAddress(after.host));
  return {
    insert: { proxy_addresses: added.map((address) => addressRow(after, address)) },
    remove: { proxy_addresses: dropped },
  };
}

/** The host's row in the directory, unless it is gone, or is another proxy's where somebody altered the database. */
async function ownAddress(store: Store, { host, proxy_id }: Row<'proxies'>) {
  const row = await store.get('proxy_addresses', { address: hostAddress(host ?? '') });
  return row?.proxy_id === proxy_id ? [{ address: row.address }] : [];
}

async function requireFree(store: Store, address: string): Promise<void> {
  if ((await store.get('proxy_addresses', { address })) === undefined) return;
  const message = 'is the host of another proxy';
  throw new VaultError('conflict', {
    public: `The attribute proxy_host ${message}.`,
    errors: { proxy_host: [message] },
  });
}
