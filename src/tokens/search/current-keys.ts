/** Finding tokens by values under the search keys that the tenant has when the search ends. */
import type { Caller } from '../../rules/caller.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { TokenReading } from '../read.ts';

export interface TokenFinding extends TokenReading {
  readonly tenants: Pick<Tenants, 'find'>;
}

/**
 * A search can take longer than new keys are known before they are used, for example while the database restarts. It
 * would miss what others have written under the new keys by then, so it is made again under all of them.
 */
export async function underCurrentKeys<T>(
  tools: Pick<TokenFinding, 'tenants'>,
  caller: Caller,
  find: (caller: Caller) => Promise<T>,
): Promise<T> {
  const found = await find(caller);
  const { tenant } = caller;
  const now = await tools.tenants.find(tenant.id);
  if (now === undefined || countOf(now) === countOf(tenant)) return found;
  const current = { ...caller, tenant: { ...tenant, keyring: now.keyring } } as Caller;
  return underCurrentKeys(tools, current, find);
}

function countOf({ keyring }: Tenant): number {
  return keyring.versions.search.length;
}
