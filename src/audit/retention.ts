/** Log retention: old entries go, whole prefixes of streams at a time, and a signed statement stays. */
import { type Clock, hour, type Instant, instantAfter, parseInstant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { systemEntry } from '../rules/log-entries.ts';
import type { Tenant, Tenants } from '../rules/tenant.ts';
import { type ChainHead, seedHead } from '../store/log-chain/entries.ts';
import { follows, headOf, linkOfBlock } from '../store/log-chain/links.ts';
import { createFailures } from '../store/per-tenant/failures.ts';
import { workOfTenant } from '../store/queries/due.ts';
import { dueWork } from '../store/queries/due-tenants.ts';
import { streamBeginning } from '../store/queries/logs.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { streamsOf } from './checkpoints.ts';
import { oldestReadable } from './list.ts';
import { isOwnBlock } from './proving.ts';
import { removeOldChapters } from './search-index/build.ts';
import {
  isOwn,
  type LogRemoval,
  logSigningKey,
  openRemoval,
  removalType,
  signStatement,
} from './statements.ts';

export interface LogRetention {
  readonly store: Store;
  readonly tenants: Tenants;
  readonly clock: Clock;
}

/** The most entries that one commit removes, unless a single block has more. */
export const removedEntriesMax = 1_000;
const removedBlocksMax = 100;

/**
 * Removes the entries that are older than their tenant's Log Retention quota. An entry is removed only
 * with its block and all blocks before it in its stream, so a newer one delays the removal of others a little.
 * Altered entries are evidence: they stay, because signing their removal would erase the evidence for good.
 * @returns how many were removed.
 * @throws VaultError `integrity`, after all other work is done, when a stream is not intact.
 */
export async function removeExpiredLogs(
  tools: LogRetention,
  stopping: AbortSignal,
): Promise<number> {
  const { store, tenants, clock } = tools;
  const broken: string[] = [];
  const seen = new Set<TenantId>();
  const failures = createFailures(store);
  let removed = 0;
  const trimOne = async (id: TenantId) => {
    const tenant = await tenants.find(id);
    if (!tenant) return;
    const trimmed = await trimTenant(tools, tenant, stopping);
    await removeOldChapters(tools, tenant, oldestReadable(tenant, clock.now()));
    removed += trimmed.removed;
    broken.push(...trimmed.broken);
    if (!stopping.aborted) await postpone(tools, tenant);
  };
  await failures.attempt(async () => {
    for await (const page of dueWork(store, { work: 'old logs', until: clock.now() })) {
      for (const { tenant_id } of page) {
        if (seen.has(tenant_id)) continue;
        seen.add(tenant_id);
        await failures.attempt(() => trimOne(tenant_id));
        if (stopping.aborted) return;
      }
    }
  });
  if (stopping.aborted) return removed;
  failures.report();
  if (broken.length > 0) throw notIntact(broken);
  return removed;
}

/** When the job looks at the log of a tenant that begins with its oldest entry then. */
export function oldLogsAt({ id, quotas }: Pick<Tenant, 'id' | 'quotas'>, oldest: Instant) {
  const due_at = instantAfter(oldest, quotas.log_retention);
  return { tenant_id: id, work: 'old logs', due_at } as const;
}

interface TrimmedTenant {
  readonly removed: number;
  /** The streams that are not intact. */
  readonly broken: readonly string[];
}

async function trimTenant(
  tools: LogRetention,
  tenant: Tenant,
  stopping: AbortSignal,
): Promise<TrimmedTenant> {
  const before = oldestReadable(tenant, tools.clock.now());
  const broken: string[] = [];
  let removed = 0;
  for await (const { stream_id, first_until } of streamsOf(tools.store, tenant.id)) {
    if (stopping.aborted) break;
    if (first_until >= before) continue;
    const trimmed = await trim(tools, { tenant, stream_id, before, stopping });
    removed += trimmed.removed;
    if (!trimmed.intact) broken.push(`stream ${stream_id} of tenant ${tenant.id}`);
  }
  return { removed, broken };
}

/** The job looks again once the oldest block is old, and not before an hour has passed. */
async function postpone({ store, clock }: LogRetention, tenant: Tenant): Promise<void> {
  const now = clock.now();
  let oldest = now;
  for await (const { first_until } of streamsOf(store, tenant.id)) {
    if (first_until < oldest) oldest = first_until;
  }
  const next = oldLogsAt(tenant, oldest);
  const due_at = parseInstant(Math.max(next.due_at + 1, now + hour));
  const known = await store.select(workOfTenant(tenant.id, 'old logs'));
  // With a conflict another server has done so, or the next run does.
  await store.record({ remove: { due_work: known }, insert: { due_work: [{ ...next, due_at }] } });
}

function notIntact(broken: readonly string[]): VaultError {
  return new VaultError('integrity', {
    public: 'The audit log is not intact.',
    internal: `old log entries stay, because they were altered: ${broken.join(', ')}`,
  });
}

interface LogTrimming {
  readonly tenant: Tenant;
  readonly stream_id: string;
  readonly before: Instant;
  readonly stopping: AbortSignal;
}

async function trim(
  tools: LogRetention,
  trimming: LogTrimming,
): Promise<{ readonly removed: number; readonly intact: boolean }> {
  const { tenant, stream_id, stopping } = trimming;
  let removed = 0;
  for (;;) {
    const key = { tenant_id: tenant.id, stream_id };
    const earlier = await tools.store.get('log_removals', key);
    const old = await oldestBlocks(tools.store, trimming);
    const last = lastOfChain(tenant, startOf(trimming, earlier), old);
    if (!last) {
      const now = await tools.store.get('log_removals', key);
      // Another server has removed the beginning between the two reads: look again.
      if (now?.version !== earlier?.version) continue;
      return { removed, intact: old.length === 0 };
    }
    if (!(await remove(tools, trimming, { old, last, earlier }))) break;
    for (const block of old) removed += countOf(block);
    if (stopping.aborted) break;
  }
  return { removed, intact: true };
}

/** The beginning of the stream, up to the first block that stays. */
async function oldestBlocks(
  store: Store,
  { tenant, stream_id, before }: LogTrimming,
): Promise<Row<'logs'>[]> {
  const beginning = { tenant: tenant.id, stream_id, limit: removedBlocksMax };
  const blocks = await store.select(streamBeginning(beginning));
  let entries = 0;
  const kept = blocks.findIndex((block, index) => {
    entries += countOf(block);
    return block.last_at >= before || (index > 0 && entries > removedEntriesMax);
  });
  return kept === -1 ? blocks : blocks.slice(0, kept);
}

function countOf({ first_seq, last_seq }: Row<'logs'>): number {
  return last_seq - first_seq + 1;
}

function startOf(
  { tenant, stream_id }: LogTrimming,
  earlier: Row<'log_removals'> | undefined,
): ChainHead | undefined {
  if (!earlier) return seedHead(tenant.id, stream_id);
  const statement = isOwn(tenant, earlier) ? openRemoval(earlier) : undefined;
  return statement && { seq: statement.to_seq, hash: statement.last_hash };
}

/**
 * The end of the blocks when the vault wrote all of them and they continue from the head; `undefined` when one does
 * not. The chain needs no key: blocks that were put in place of younger ones would be signed away with them.
 */
function lastOfChain(
  tenant: Tenant,
  head: ChainHead | undefined,
  blocks: readonly Row<'logs'>[],
): ChainHead | undefined {
  let last: ChainHead | undefined;
  for (const block of blocks) {
    const previous = last ?? head;
    if (!previous || !isOwnBlock(tenant, block)) return undefined;
    const link = linkOfBlock(block);
    if (!follows(previous, link)) return undefined;
    last = headOf(link);
  }
  return last;
}

interface OldBlocks {
  readonly old: readonly Row<'logs'>[];
  readonly last: ChainHead;
  readonly earlier: Row<'log_removals'> | undefined;
}

/** False when another server was faster. */
async function remove(
  { store, clock }: LogRetention,
  { tenant, stream_id, before }: LogTrimming,
  { old, last, earlier }: OldBlocks,
): Promise<boolean> {
  const now = clock.now();
  const statement: LogRemoval = {
    type: removalType,
    tenant_id: tenant.id,
    stream_id,
    to_seq: last.seq,
    last_hash: last.hash,
    before,
    removed_at: now,
  };
  const row: Row<'log_removals'> = {
    tenant_id: tenant.id,
    stream_id,
    version: (earlier?.version ?? 0) + 1,
    to_seq: last.seq,
    ...signStatement(logSigningKey(tenant), statement),
  };
  const fact = { entity: 'log', id: `${stream_id} to ${last.seq}`, operation: 'delete' } as const;
  const { conflict } = await store.commit({
    remove: { logs: old.map(({ first_seq }) => ({ tenant_id: tenant.id, stream_id, first_seq })) },
    ...(earlier ? { replace: { log_removals: [row] } } : { insert: { log_removals: [row] } }),
    entries: [systemEntry({ ...fact, tenant: tenant.id, at: now })],
  });
  return conflict === undefined;
}
