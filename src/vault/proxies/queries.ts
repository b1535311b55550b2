/** What is asked of stored proxies. */
import { invalid, VaultError } from '../../lib/errors.ts';
import { type ProxyId, parseUuid, type TenantId } from '../../lib/ids.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { addressRow, hostAddress, keyAddress } from './row.ts';
import { isGiven } from './tenant-hosts.ts';

/** @throws VaultError `not_found`, alike for one that is missing and for another tenant's. */
export async function proxyOf(store: Store, tenant: TenantId, id: string): Promise<Row<'proxies'>> {
  const proxy_id = parseUuid<ProxyId>(id);
  const row = proxy_id && (await store.get('proxies', { tenant_id: tenant, proxy_id }));
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no proxy with this id.' });
}

/**
 * A host decides about requests that were not sent to the tenant, so it is the operator's to give.
 * @throws VaultError `validation_failed` for a name that the tenant was not given.
 */
export async function requireGiven(
  store: Store,
  tenant: Tenant,
  host: string | null,
): Promise<void> {
  if (host === null || (await isGiven(store, tenant, host))) return;
  const command = `strongroom tenant hosts add NAME --tenant ${tenant.id}`;
  throw invalid('proxy_host', `must be a name that the operator gave to the tenant (${command})`);
}

/** The rows of the directory that a new proxy needs, or one that gets another host. */
export async function addressesToChange(
  store: Store,
  { before, after }: { readonly before?: Row<'proxies'>; readonly after: Row<'proxies'> },
) {
  const pointer = after.host === null ? undefined : await pointerOf(store, after.host);
  if (pointer && pointer.proxy_id !== after.proxy_id) throw hostTaken();
  const hosts = after.host === null || pointer ? [] : [hostAddress(after.host)];
  const added = before === undefined ? [keyAddress(after.key_hash), ...hosts] : hosts;
  const left = before?.host === after.host ? null : (before?.host ?? null);
  const dropped = left === null ? [] : await ownAddress(store, { ...after, host: left });
  return {
    insert: { proxy_addresses: added.map((address) => addressRow(after, address)) },
    remove: { proxy_addresses: dropped },
  };
}

function pointerOf(store: Store, host: string): Promise<Row<'proxy_addresses'> | undefined> {
  return store.get('proxy_addresses', { address: hostAddress(host) });
}

/** The host's row in the directory, unless it is gone, or is another proxy's where somebody altered the database. */
async function ownAddress(store: Store, { host, proxy_id }: Row<'proxies'>) {
  const row = await pointerOf(store, host ?? '');
  return row?.proxy_id === proxy_id ? [{ address: row.address }] : [];
}

function hostTaken(): VaultError {
  const message = 'is the host of another proxy';
  return new VaultError('conflict', {
    public: `The attribute proxy_host ${message}.`,
    errors: { proxy_host: [message] },
  });
}
