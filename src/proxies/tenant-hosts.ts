/** Host names that the operator gives to tenants for their proxies. No tenant can change them through the API. */

import type { Clock } from '../base/clock.ts';
import { invalid, VaultError } from '../base/errors.ts';
import type { Operator } from '../rules/caller.ts';
import { comparedName, flawOfHost, type VaultNames } from '../rules/host-names.ts';
import { entryOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import { type Guarded, ifProven, proven, provenRows } from '../rules/proven-row.ts';
import type { Tenant } from '../rules/tenant.ts';
import { hostsOfTenant } from '../store/queries/tenant-hosts.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { hostAddress } from './row.ts';

export interface HostReading {
  readonly store: Store;
}

export interface HostGiving extends HostReading {
  readonly clock: Clock;
  readonly names: VaultNames;
}

/** Whether the operator gave the name to the tenant; false for a row that the vault did not write. */
export async function isGiven(
  store: Store,
  tenant: Guarded & Pick<Tenant, 'id'>,
  host: string,
): Promise<boolean> {
  const row = await store.get('tenant_hosts', { host });
  return row?.tenant_id === tenant.id && ifProven(tenant, 'tenant_hosts', row) !== undefined;
}

/**
 * A host name may attract requests that were not meant for the tenant, so only the operator can give it.
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

/** The names of a tenant, sorted, without those that the vault did not write. */
export async function hostsOf(
  { store }: HostReading,
  tenant: Tenant,
): Promise<readonly Row<'tenant_hosts'>[]> {
  const rows = await store.select(hostsOfTenant(tenant.id));
  return provenRows(tenant, 'tenant_hosts', rows).rows;
}

/**
 * Gives a name to a tenant, and removes it from a proxy of another tenant. If the tenant has the name already,
 * nothing changes. The decision throws `conflict` for a name of another tenant.
 * @throws VaultError `validation_failed` for a name that cannot be given.
 */
export function giveHost(
  { store, clock, names }: HostGiving,
  operator: Operator,
  given: string,
): Decide {
  const host = comparedName(given);
  const flaw = flawOfHost(host, names);
  if (flaw !== undefined) throw invalid('name', flaw);
  const { tenant } = operator;
  return async () => {
    const before = await store.get('tenant_hosts', { host });
    if (before && before.tenant_id !== tenant.id) throw givenToAnother();
    const now = clock.now();
    const row = proven(tenant, 'tenant_hosts', {
      host,
      version: (before?.version ?? 0) + 1,
      tenant_id: tenant.id,
      created_at: (before && ifProven(tenant, 'tenant_hosts', before)?.created_at) ?? now,
    });
    // The proxy's tenant had the name before, or was never given it.
    const address = hostAddress(host);
    const pointer = await store.get('proxy_addresses', { address });
    const isForeign = pointer !== undefined && pointer.tenant_id !== tenant.id;
    const fact = { entity: 'tenant_host', id: host, operation: 'create' } as const;
    return {
      change: {
        ...(before ? { replace: { tenant_hosts: [row] } } : { insert: { tenant_hosts: [row] } }),
        ...(isForeign && { remove: { proxy_addresses: [{ address }] } }),
        entries: [entryOf(operator, now, fact)],
      },
      reply: { status: 201 },
    };
  };
}

/** Takes a name from a tenant: from then on, the name finds none of its proxies. The decision throws `not_found`. */
export function takeHost(
  { store, clock }: Omit<HostGiving, 'names'>,
  operator: Operator,
  given: string,
): Decide {
  const host = comparedName(given);
  return async () => {
    const row = await store.get('tenant_hosts', { host });
    if (row?.tenant_id !== operator.tenant.id) {
      throw new VaultError('not_found', { public: 'The tenant was not given this name.' });
    }
    const fact = { entity: 'tenant_host', id: host, operation: 'delete' } as const;
    return {
      change: {
        remove: { tenant_hosts: [{ host, version: row.version }] },
        entries: [entryOf(operator, clock.now(), fact)],
      },
      reply: { status: 204 },
    };
  };
}

function givenToAnother(): VaultError {
  return new VaultError('conflict', {
    public: 'The name was given to another tenant. Remove it there first.',
  });
}
