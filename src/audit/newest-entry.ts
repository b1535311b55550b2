/** The newest entry of a log that says something: what the vault itself has written there can be relied on. */
import type { Instant } from '../base/clock.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import type { Store } from '../store/store.ts';
import { findLogs, type LogFilter } from './find.ts';
import { oldestReadable } from './list.ts';
import { isOwnBlock } from './proving.ts';

type SoughtFacts = 'entity_type' | 'entity_id' | 'operation' | 'result';

interface Sought extends Pick<LogFilter, SoughtFacts> {
  readonly where?: (entry: PlacedEntry) => boolean;
}

/**
 * Within the retention of the log. Entries that the vault cannot have written, because their block has no proof, are
 * not considered.
 */
export async function newestOwnEntry(
  store: Pick<Store, 'select' | 'scan'>,
  tenant: Tenant,
  { now, ...sought }: Sought & { readonly now: Instant },
): Promise<PlacedEntry | undefined> {
  const [entry] = await findLogs(store, {
    ...sought,
    tenant: tenant.id,
    oldest: oldestReadable(tenant, now),
    until: undefined,
    after: undefined,
    skip: 0,
    limit: 1,
    index: { keyring: tenant.keyring, now },
    isOwn: (block) => isOwnBlock(tenant, block),
  });
  return entry;
}
