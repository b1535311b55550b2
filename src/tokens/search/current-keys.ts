/** Finding tokens by values under the search keys that the tenant has when the search ends. */
import type { Tenant, Tenants } from '../../rules/tenant.ts';

export interface KeyFollowing {
  readonly tenants: Pick<Tenants, 'find'>;
}

/**
 * A search can take longer than new keys are known before they are used, for example while the database restarts. It
 * would miss what others have written under the new keys by then, so it is made again under all of them.
 */
export async function underCurrentKeys<T>(
  { tenants }: KeyFollowing,
  tenant: Tenant,
  find: (tenant: Tenant) => Promise<T>,
): Promise<T> {
  const found = await find(tenant);
  const now = await tenants.find(tenant.id);
  if (now === undefined || countOf(now) === countOf(tenant)) return found;
  return underCurrentKeys({ tenants }, now, find);
}

function countOf({ keyring }: Tenant): number {
  return keyring.versions.search.length;
}
