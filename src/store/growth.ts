/** Which changes make what is stored grow, and how much they may leave stored. */
import type { ApplicationId, TenantId } from '../lib/ids.ts';
import type { LogEntry } from '../lib/log-chain/entries.ts';

/** The quotas of bytes, by which a change that would exceed them is refused as a whole. */
export type StorageQuota = 'token_storage' | 'public_application_storage';

/** What a change may leave stored at most. The engine compares when the rows are written, in the same transaction. */
export interface StorageCeiling {
  readonly quota: StorageQuota;
  readonly tenant_id: TenantId;
  /** Absent where the bytes of all applications of the tenant count. */
  readonly application_id?: ApplicationId;
  readonly bytes: number;
}

type GrowingRows = Readonly<Record<string, readonly object[] | undefined>>;

interface GrowingChange {
  readonly insert?: GrowingRows;
  readonly replace?: GrowingRows;
  readonly remove?: GrowingRows;
  readonly entries: readonly [LogEntry, ...LogEntry[]];
}

/** Whose rows callers make, and of which they can make any number. */
const growingInserts = [
  'applications',
  'api_keys',
  'sessions',
  'proxies',
  'reactors',
  'reactor_runs',
  'client_keys',
  'tokens',
  'token_intents',
  'webhooks',
] as const;

/** Whose rows callers can make larger. Of other tables a replaced row is about as large as before. */
const growingReplacements = ['proxies', 'reactors', 'tokens', 'webhooks'] as const;

/**
 * False of what must be possible while there is no room: reading, removing, withdrawing access, and the work of
 * the vault and its operator. Entries of the log and events follow from a change and do not count. A stored
 * response counts, unless it is that of a removal.
 */
export function growsStorage({ insert, replace, remove, entries }: GrowingChange): boolean {
  // The benchmark measures a store without a log, whose changes have no entries.
  if (entries[0]?.actor_id === null) return false;
  const has = (rows: GrowingRows | undefined, tables: readonly string[]) =>
    rows !== undefined && tables.some((table) => (rows[table]?.length ?? 0) > 0);
  if (has(insert, growingInserts) || has(replace, growingReplacements)) return true;
  const removes = remove !== undefined && Object.values(remove).some((rows) => rows?.length);
  return has(insert, ['replies']) && !removes;
}
