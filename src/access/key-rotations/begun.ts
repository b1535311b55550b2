/**
 * Whether the vault itself began a rotation, or paused it. Rows of rotations carry no proof, so the log, which has one,
 * must say so.
 */
import { findLogs } from '../../audit/find.ts';
import { isOwnBlock } from '../../audit/proving.ts';
import { type Instant, parseInstant } from '../../base/clock.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { PlacedEntry } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';
import type { Rotation } from './rotation.ts';

type ReadingStore = Pick<Store, 'select' | 'scan'>;

const beginnings: ReadonlySet<string> = new Set(['rotate', 'introduce']);
const pauses: ReadonlySet<string> = new Set(['pause', 'resume']);

/** New keys are introduced once. False for a row that an attacker inserted, or set back to its beginning. */
export async function isBegun(
  store: ReadingStore,
  tenant: Tenant,
  { purpose, started_at }: Pick<Rotation, 'purpose' | 'started_at'>,
): Promise<boolean> {
  const newest = await newestEntry(
    store,
    tenant,
    started_at,
    ({ operation, message }) => beginnings.has(operation) && message.endsWith(`: ${purpose}`),
  );
  return newest?.operation === 'rotate' && newest.created_at === started_at;
}

/** False for a rotation that an attacker paused, or that was resumed. */
export async function isPausedInLog(
  store: ReadingStore,
  tenant: Tenant,
  { purpose }: Pick<Rotation, 'purpose'>,
): Promise<boolean> {
  const newest = await newestEntry(
    store,
    tenant,
    parseInstant(0),
    ({ operation, message }) =>
      pauses.has(operation) || (operation === 'rotate' && message.endsWith(`: ${purpose}`)),
  );
  return newest?.operation === 'pause';
}

/** Of the tenant's keys, in the blocks that the vault wrote. */
async function newestEntry(
  store: ReadingStore,
  tenant: Tenant,
  oldest: Instant,
  where: (entry: PlacedEntry) => boolean,
): Promise<PlacedEntry | undefined> {
  const [newest] = await findLogs(store, {
    tenant: tenant.id,
    entity_type: 'keyring',
    entity_id: tenant.id,
    oldest,
    until: undefined,
    after: undefined,
    skip: 0,
    limit: 1,
    isOwn: (block) => isOwnBlock(tenant, block),
    where: (entry) => entry.result === 'success' && where(entry),
  });
  return newest;
}
