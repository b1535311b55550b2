/** Receipts of erasure: what the log says of data that is gone, signed for those who have to show it. */
import { day, hour, type Instant, instantAfter, latestInstant } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import type { JsonObject } from '../base/json.ts';
import type { Purpose } from '../keys/keyring.ts';
import { readStored } from '../keys/root/wrapped.ts';
import { publicKeyPem } from '../keys/signing.ts';
import type { Keys } from '../rules/proven-row.ts';
import type { Tenant } from '../rules/tenant.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import { blockEnd } from '../store/queries/log-streams.ts';
import { rowsDue } from '../store/queries/tenant-rows.ts';
import { type Mark, marksOfEntry } from '../store/row-states.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { introductionsOf } from './checkpoints.ts';
import { newestOwnEntry } from './newest-entry.ts';
import {
  type ErasedKey,
  type ErasureReceipt,
  erasureType,
  type Leftovers,
  logSigningKey,
  publicKeysOf,
  type Signed,
  signStatement,
  type WrappedBy,
} from './statements.ts';

/**
 * Stored responses last for a day. A call of a reactor may wait for a day, and its result lasts for another. What has
 * expired is off the disk within the hour.
 */
const responsesMs = day;
const resultsMs = 2 * day;
const removalMs = hour;

/** The entry that says that something is gone, and what it says of the row. */
export interface FoundErasure {
  readonly entry: PlacedEntry;
  readonly mark: Mark;
}

export interface Erased {
  readonly entity: 'token' | 'tenant';
  readonly id: string;
}

/** The newest entry about the removal of the row. */
export async function findErasure(
  store: Pick<Store, 'select' | 'scan'>,
  tenant: Tenant,
  { entity, id }: Erased,
  now: Instant,
): Promise<FoundErasure | undefined> {
  const entry = await newestOwnEntry(store, tenant, {
    entity_type: entity,
    entity_id: id,
    where: (one) => removalIn(one) !== undefined,
    now,
  });
  const mark = entry && removalIn(entry);
  return mark && { entry, mark };
}

function removalIn(entry: PlacedEntry): Mark | undefined {
  if (entry.result !== 'success') return undefined;
  return marksOfEntry(entry).find(({ sign, isOwn }) => sign === '-' && isOwn);
}

export interface ReceiptFacts extends Erased {
  readonly entry: PlacedEntry;
  readonly keys: readonly ErasedKey[];
  readonly rootKey: WrappedBy | null;
  readonly now: Instant;
}

interface SealedUnder {
  readonly purpose: Purpose;
  readonly version: number;
  /** The age of keys at which rows under them are sealed again; infinite for never. */
  readonly keyMaxAgeMs: number;
}

/** A key that sealed what is gone. @param row the tenant's. */
export function erasedKey(
  row: Row<'tenants'>,
  { keyring }: Keys,
  { purpose, version, keyMaxAgeMs }: SealedUnder,
): ErasedKey {
  const known = keyring.versions[purpose][version - 1];
  const created_at = known ? (known.createdAt ?? row.created_at) : null;
  const isDue = created_at !== null && known?.state !== 'destroyed' && keyMaxAgeMs < latestInstant;
  return {
    purpose,
    version: known?.version ?? null,
    state: known?.state ?? 'unknown',
    created_at,
    destroyed_at: known?.destroyedAt ?? null,
    due_at: isDue ? instantAfter(created_at, keyMaxAgeMs) : null,
  };
}

/** The root key that wraps the keyring in the row; null in the form of earlier releases, which does not name it. */
export function wrappedBy({ keyring }: Row<'tenants'>): WrappedBy | null {
  const header = readStored(keyring)?.header;
  return header ? { source: header.source, key_id: header.keyId, version: header.version } : null;
}

/** A signed receipt, and what leads from earlier keys of the log to the one that signed it. */
export interface IssuedReceipt extends Signed {
  /** Checkpoints, each of which introduces a key. */
  readonly introductions: readonly Signed[];
}

/** Signed under the key of the tenant's log. `undefined` when the entry has been removed meanwhile. */
export async function issueReceipt(
  store: Pick<Store, 'select' | 'get'>,
  tenant: Tenant,
  { entity, id, entry, keys, rootKey, now }: ReceiptFacts,
): Promise<IssuedReceipt | undefined> {
  const { stream_id, seq, created_at: erased_at, operation } = entry;
  const [end] = await store.select(blockEnd({ tenant: tenant.id, stream_id, seq }));
  if (end === undefined) return undefined;
  const until = (ms: number): Instant => instantAfter(erased_at, ms);
  const due = { tenant, rowsMax: 1, skip: 0 };
  const [responses, results] = await Promise.all([
    store.select(rowsDue('replies', 'next_expiry_at', { ...due, until: until(responsesMs) })),
    store.select(rowsDue('reactor_runs', 'expires_at', { ...due, until: until(resultsMs) })),
  ]);
  const leftovers = (found: readonly unknown[], ms: number): Leftovers => {
    // What a deleted tenant leaves behind is sealed under keys that are destroyed.
    if (entity === 'tenant') return { gone_by: erased_at, gone: true };
    return { gone_by: until(ms + removalMs), gone: found.length === 0 && now > until(ms) };
  };
  const receipt: ErasureReceipt = {
    type: erasureType,
    tenant_id: tenant.id,
    entity,
    id,
    operation,
    erased_at,
    log_entry: { stream_id, seq, head: [end.last_seq, end.hash] },
    row_gone_at: erased_at,
    search_terms_gone_at: erased_at,
    stored_responses: leftovers(responses, responsesMs),
    results: leftovers(results, resultsMs),
    keys,
    root_key: rootKey,
    issued_at: now,
  };
  const introductions = await introductionsOf(store, tenant);
  return { ...signStatement(logSigningKey(tenant), receipt), introductions };
}

/** The form in responses, which `strongroom erasure verify` reads back. */
export function viewReceipt(issued: IssuedReceipt, tenant: Tenant): object {
  const { statement, signature, public_key, introductions } = issued;
  return {
    ...viewErasure(JSON.parse(statement) as ErasureReceipt),
    statement,
    signature,
    public_key,
    public_key_pem: publicKeyPem(public_key),
    public_keys: publicKeysOf(tenant),
    introductions,
  };
}

/** What the statement says, as responses have it. */
export function viewErasure(receipt: ErasureReceipt): JsonObject {
  const { type: _type, stored_responses, results, log_entry, keys, root_key, ...rest } = receipt;
  const leftovers = ({ gone_by, gone }: Leftovers) => ({ gone_by: formatTimestamp(gone_by), gone });
  const date = (at: Instant | null) => at && formatTimestamp(at);
  const [head_seq, head_hash] = log_entry.head;
  return {
    ...rest,
    erased_at: formatTimestamp(receipt.erased_at),
    log_entry: { stream_id: log_entry.stream_id, seq: log_entry.seq, head_seq, head_hash },
    row_gone_at: formatTimestamp(receipt.row_gone_at),
    search_terms_gone_at: formatTimestamp(receipt.search_terms_gone_at),
    stored_responses: leftovers(stored_responses),
    results: leftovers(results),
    keys: keys.map((key) => ({
      ...key,
      created_at: date(key.created_at),
      destroyed_at: date(key.destroyed_at),
      due_at: date(key.due_at),
    })),
    root_key: root_key && { ...root_key },
    issued_at: formatTimestamp(receipt.issued_at),
  };
}
