/** Which pages may show the fields of a public application: asked for with its key, before any page is trusted. */
import type { Clock } from '../base/clock.ts';
import { apiKeyPlausible, hashApiKey } from '../keys/api-key.ts';
import { requireProven } from '../rules/proven-row.ts';
import type { Tenants } from '../rules/tenant.ts';
import type { Store } from '../store/store.ts';
import { authorityOf } from './authority.ts';

export interface OriginsTools {
  readonly store: Store;
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
}

/**
 * None where the application lists none; `undefined` where this is not the key of a public application.
 * @throws VaultError `integrity` when one of the rows was altered outside the vault.
 */
export async function originsByKey(
  { store, tenants, clock }: OriginsTools,
  key: string,
): Promise<readonly string[] | undefined> {
  if (!apiKeyPlausible(key)) return undefined;
  const stored = await store.get('api_keys', { key_hash: hashApiKey(key) });
  const tenant = stored && (await tenants.find(stored.tenant_id));
  if (!stored || !tenant) return undefined;
  const { application_id, key_id, session_id } = requireProven(tenant, 'api_keys', stored);
  if (session_id !== null) return undefined;
  const credential = { application: application_id, key: key_id, session: undefined };
  const authority = await authorityOf(store, tenant, { credential, now: clock.now() });
  if ('ended' in authority || authority.kind !== 'public') return undefined;
  return authority.origins ?? [];
}
