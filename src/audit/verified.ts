/** Verification on request: what was signed since the last one is verified, and an entry says how far that came. */
import type { Clock, Instant } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import type { TenantId } from '../base/ids.ts';
import { createPause } from '../base/pauses.ts';
import type { Caller } from '../rules/caller.ts';
import { detailed, entryOf, failureOf } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import type { Tenant } from '../rules/tenant.ts';
import { checkpointsAfter } from '../store/queries/log-statements.ts';
import { blocksAfter } from '../store/queries/logs.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import type { OpenedCheckpoint } from './checkpoint-trail.ts';
import { newestCheckpoint } from './checkpoints.ts';
import { newestOwnEntry } from './newest-entry.ts';
import { pageBlocksMax, removalsOf } from './read.ts';
import { openCheckpoint, openRemoval, publicKeysOf } from './statements.ts';
import { LogVerifier } from './verify.ts';

export interface LogVerifying {
  readonly store: Store;
  readonly clock: Clock;
}

/** One request verifies about so many entries, and at least what one checkpoint signs. */
const entriesMax = 20_000;
const checkpointsMax = 200;
const findingsShown = 10;

/** From the checkpoint before which something was found, or from the first one, to the last that was verified. */
interface Verified {
  readonly from: number;
  readonly to: number;
}

/**
 * Continues where the last verification came to. Every entry is read once for this, however often it is asked for:
 * `strongroom logs verify` reads the whole log again.
 */
export function verifyLog({ store, clock }: LogVerifying, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const before = await lastVerified(store, tenant, now);
    const [known, newest] = await Promise.all([
      before && openedAt(store, tenant.id, before.to),
      newestCheckpoint(store, tenant.id),
    ]);
    const portion = await nextPortion(store, tenant.id, known);
    const last = portion.at(-1);
    const findings = last ? await findingsIn(store, tenant, { known, portion }) : [];
    const to = last?.seq ?? known?.checkpoint.seq;
    const from = findings.length > 0 ? to : known ? before?.from : 1;
    const fact = { entity: 'log_checkpoint', id: String(to), operation: 'verify' } as const;
    const entry = findings.length > 0 ? failureOf(caller, now, fact) : entryOf(caller, now, fact);
    const none = { entity: 'log', id: tenant.id, operation: 'read' } as const;
    return {
      change: {
        entries: [
          to === undefined
            ? entryOf(caller, now, none)
            : detailed(entry, placeOf({ from: from ?? to, to })),
        ],
      },
      reply: {
        status: 200,
        body: {
          intact_since: await signedAt(store, tenant.id, from),
          verified_until: await signedAt(store, tenant.id, to),
          signed_since: await signedAt(store, tenant.id, 1),
          checkpoint: to ?? null,
          newest_checkpoint: newest?.seq ?? null,
          findings: findings.slice(0, findingsShown),
        },
      },
    };
  };
}

const placeOf = ({ from, to }: Verified): string => `checkpoints ${from} to ${to}`;
/** At the end of a message, behind whatever else it says. */
const placeIn = /: checkpoints (\d+) to (\d+)$/;

/** How far the log is verified, as the newest entry of a verification says. */
export async function lastVerified(
  store: Store,
  tenant: Tenant,
  now: Instant,
): Promise<Verified | undefined> {
  const entry = await newestOwnEntry(store, tenant, {
    entity_type: 'log_checkpoint',
    entity_id: undefined,
    operation: 'verify',
    where: ({ message }) => placeIn.test(message),
    now,
  });
  const [, from, to] = placeIn.exec(entry?.message ?? '') ?? [];
  return from && to ? { from: Number(from), to: Number(to) } : undefined;
}

interface StoredCheckpoint extends OpenedCheckpoint {
  readonly signed: Row<'checkpoints'>;
}

/** Undefined for one that was removed or altered: the log is then verified from its beginning. */
async function openedAt(
  store: Store,
  tenant: TenantId,
  seq: number,
): Promise<StoredCheckpoint | undefined> {
  const signed = await store.get('checkpoints', { tenant_id: tenant, seq });
  const checkpoint = signed && openCheckpoint(signed);
  return checkpoint && { signed, checkpoint };
}

async function signedAt(store: Store, tenant: TenantId, seq: number | undefined) {
  const row = seq && (await store.get('checkpoints', { tenant_id: tenant, seq }));
  return row ? formatTimestamp(row.created_at) : null;
}

/** The checkpoints that follow, until they sign enough entries for one request. */
async function nextPortion(
  store: Store,
  tenant: TenantId,
  known: StoredCheckpoint | undefined,
): Promise<Row<'checkpoints'>[]> {
  const page = { tenant, after: known?.signed, limit: checkpointsMax };
  const rows = await store.select(checkpointsAfter(page));
  const seqs = new Map(known?.checkpoint.heads.map(([stream, seq]) => [stream, seq]));
  let entries = 0;
  const isEnough = (row: Row<'checkpoints'>) => {
    for (const [stream, seq] of openCheckpoint(row)?.heads ?? []) {
      entries += Math.max(0, seq - (seqs.get(stream) ?? 0));
      seqs.set(stream, seq);
    }
    return entries >= entriesMax;
  };
  const last = rows.findIndex(isEnough);
  return last === -1 ? rows : rows.slice(0, last + 1);
}

interface Portion {
  readonly known: StoredCheckpoint | undefined;
  readonly portion: readonly Row<'checkpoints'>[];
}

/** What `strongroom logs verify` would find there. */
async function findingsIn(store: Store, tenant: Tenant, { known, portion }: Portion) {
  const verifier = new LogVerifier({
    trustedKeys: publicKeysOf(tenant),
    kept: [],
    ...(known && { from: known }),
  });
  const starts = new Map(known?.checkpoint.heads.map(([stream, seq]) => [stream, seq]));
  const ends = new Map<string, number>();
  verifier.take({ kind: 'begin', tenant_id: tenant.id });
  for await (const signed of removalsOf(store, tenant.id)) {
    verifier.take({ kind: 'removal', signed });
    const { stream_id = '', to_seq = 0 } = openRemoval(signed) ?? {};
    starts.set(stream_id, Math.max(to_seq, starts.get(stream_id) ?? 0));
  }
  for (const signed of portion) {
    verifier.take({ kind: 'checkpoint', signed });
    for (const [stream, seq] of openCheckpoint(signed)?.heads ?? []) ends.set(stream, seq);
  }
  const pause = createPause();
  for (const [stream_id, to] of ends) {
    const place = { tenant: tenant.id, stream_id, after: starts.get(stream_id) ?? 0, to };
    for await (const blocks of blocksBetween(store, place)) {
      verifier.take({ kind: 'blocks', blocks });
      await pause();
    }
  }
  verifier.take({ kind: 'end', tenant_id: tenant.id });
  const { findings } = verifier.finish();
  return findings.map(({ kind, stream_id, seq, message }) => ({ kind, stream_id, seq, message }));
}

interface StreamStretch {
  readonly tenant: TenantId;
  readonly stream_id: string;
  /** The number of the last entry before it. */
  readonly after: number;
  readonly to: number;
}

async function* blocksBetween(store: Store, { tenant, stream_id, after, to }: StreamStretch) {
  // A block that continues at this place begins after it.
  let last = { stream_id, first_seq: after };
  for (let end = after; end < to; ) {
    const limit = Math.min(pageBlocksMax, to - end);
    const page = blocksAfter({ tenant, after: last, limit });
    const found = await store.scan(page, { tenant, name: 'logs' });
    const blocks = found.filter((one) => one.stream_id === stream_id && one.last_seq <= to);
    const next = blocks.at(-1);
    if (next === undefined) return;
    for (const block of blocks) yield [block];
    if (blocks.length < found.length) return;
    last = next;
    end = next.last_seq;
  }
}
