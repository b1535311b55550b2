/** Which changes make what is stored grow, and how much they may leave stored. */
import type { ApplicationId, TenantId } from '../base/ids.ts';
import type { LogEntry } from './log-chain/entries.ts';
import type { Table, VersionedTable } from './tables.ts';

/** Byte quotas. A change that would exceed one of them is refused as a whole. */
export type StorageQuota = 'token_storage' | 'public_application_storage';

/**
 * The limit of what a change may leave stored. The engine compares when it writes the rows, in the same transaction.
 */
export interface StorageCeiling {
  readonly quota: StorageQuota;
  readonly tenant_id: TenantId;
  /** Absent if the limit counts the bytes of all applications of the tenant. */
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

/**
 * Whether a row is refused while the disk is short of space, or the reason why it is written anyway. A new table does
 * not compile without a value. `tests/laws/room-to-read-and-delete.test.ts` has a list of its own of what may grow,
 * and detects a wrong value here.
 */
type NeedsRoom = true | { readonly goesOn: string };

const own = { goesOn: 'The vault writes a bounded number of them for its own work.' };
const ofLog = { goesOn: 'Nothing is read or deleted without its entry in the log.' };
const follows = { goesOn: 'It belongs to a row that is inserted with it, and that needs room.' };
const ofChange = { goesOn: 'It follows from a change, which may be a deletion.' };
const byOperator = { goesOn: 'Only the operator makes them.' };

/** Of rows that a change inserts. */
const inserted: { readonly [T in Table]: NeedsRoom } = {
  tenants: byOperator,
  applications: true,
  api_keys: true,
  sessions: true,
  proxies: true,
  proxy_addresses: follows,
  tenant_hosts: byOperator,
  client_keys: true,
  client_key_uses: true,
  replies: { goesOn: 'It needs room, unless it is the response to a removal.' },
  tokens: true,
  search_terms: follows,
  token_intents: true,
  reactors: true,
  reactor_runs: true,
  webhooks: true,
  webhook_failures: own,
  events: ofChange,
  event_sequences: ofChange,
  deliveries: true,
  leases: own,
  vault_keys: own,
  key_rotations: true,
  fingerprint_claims: follows,
  people: true,
  console_links: true,
  sign_in_methods: true,
  approvals: true,
  console_sessions: {
    goesOn: 'Few people sign in, and they may come to find out what takes the space.',
  },
  logs: ofLog,
  checkpoints: ofLog,
  log_removals: ofLog,
  stored_bytes: { goesOn: 'It has a few counters for each application.' },
  due_work: { goesOn: 'It has a few notes for each tenant, also of what is to be removed.' },
  log_pushes: {
    goesOn: 'It has one row for each stream of the log, which is pushed at all times.',
  },
  activity: own,
  log_index: { goesOn: 'It has a twentieth of the bytes of the log, and grows with it.' },
  alert_marks: { goesOn: 'An alert must not wait for room, and a key has 200 at most.' },
};

const same = { goesOn: 'It is about as large as before.' };
const withdraws = {
  goesOn: 'It is bounded, and to replace it is how access is withdrawn.',
};

/** Of rows that a change replaces. */
const replaced: { readonly [T in VersionedTable]: NeedsRoom } = {
  tenants: withdraws,
  applications: withdraws,
  api_keys: same,
  sessions: withdraws,
  proxies: true,
  tenant_hosts: byOperator,
  client_keys: same,
  replies: same,
  tokens: true,
  token_intents: same,
  reactors: true,
  reactor_runs: {
    goesOn: 'It takes what came of a call that was accepted, within the reactor_storage_limit.',
  },
  webhooks: true,
  people: withdraws,
  console_links: same,
  console_sessions: same,
  sign_in_methods: same,
  approvals: same,
  log_removals: ofLog,
};

/** Why rows of these tables are inserted even when the disk is short of space. */
const insertedWithoutRoom = withoutRoom(inserted);
/** Why rows of these tables are replaced even when the disk is short of space. */
const replacedWithoutRoom = withoutRoom(replaced);

function withoutRoom(rules: Readonly<Record<string, NeedsRoom>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(rules).flatMap(([table, rule]) =>
      rule === true ? [] : [[table, rule.goesOn] as const],
    ),
  );
}

/**
 * False for work that must be possible while the disk is short of space: reading, removing, revoking access, and the
 * work of the vault and its operator. Log entries and events follow from a change and do not count. A stored response
 * counts, unless it is that of a removal.
 */
export function growsStorage({ insert, replace, remove, entries }: GrowingChange): boolean {
  // The benchmark measures a store without a log, whose changes have no entries.
  if (entries[0]?.actor_id === null) return false;
  if (needsRoom(insert, insertedWithoutRoom) || needsRoom(replace, replacedWithoutRoom))
    return true;
  const removes = remove !== undefined && Object.values(remove).some((rows) => rows?.length);
  return (insert?.['replies']?.length ?? 0) > 0 && !removes;
}

function needsRoom(rows: GrowingRows | undefined, without: ReadonlyMap<string, string>): boolean {
  for (const table in rows) {
    if (!without.has(table) && (rows[table]?.length ?? 0) > 0) return true;
  }
  return false;
}
