/** Checkpoints: signed statements of how far every stream of a tenant's log has grown. */
import { publicKeyPem } from '../../crypto/signing.ts';
import { type Clock, day, type Instant } from '../../lib/clock.ts';
import { formatTimestamp } from '../../lib/dates.ts';
import { VaultError } from '../../lib/errors.ts';
import type { TenantId } from '../../lib/ids.ts';
import { type LogStream, logStreams } from '../../store/log-streams.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import type { Caller } from '../access/caller.ts';
import type { Decide } from '../perform.ts';
import type { Tenant, Tenants } from '../tenants/tenants.ts';
import { entryOf, systemEntry } from './audit.ts';
import {
  type Checkpoint,
  checkpointType,
  isOwn,
  logSigningKey,
  openCheckpoint,
  publicKeysOf,
  signStatement,
  statementHash,
} from './statements.ts';

export interface Checkpointing {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * A stream is named again until its newest entry is this much older than the checkpoint before. So
 * none is missed while entries are committed, and clocks of servers agree, within this time.
 */
const latenessMsMax = day;

const streamsPerPage = 200;

/** Signs a checkpoint for each tenant whose log has grown. Returns how many. */
export async function writeCheckpoints(
  { store, clock, tenants }: Checkpointing & { readonly tenants: Tenants },
  stopping: AbortSignal,
): Promise<number> {
  let written = 0;
  for (const { tenant_id } of await tenants.all()) {
    if (stopping.aborted) break;
    const tenant = await tenants.find(tenant_id);
    const now = clock.now();
    if (!tenant) continue;
    const newest = await newestCheckpoint(store, tenant_id);
    const row = await draftCheckpoint(store, tenant, newest, now);
    if (!row) continue;
    const fact = { entity: 'log_checkpoint', id: String(row.seq), operation: 'create' } as const;
    const entry = systemEntry({ ...fact, tenant: tenant_id, at: now });
    const { conflict } = await store.commit({ insert: { checkpoints: [row] }, entries: [entry] });
    if (conflict === undefined) written++;
  }
  return written;
}

/** The newest checkpoint; where there is none yet, the first is signed for whoever asks. */
export function readCheckpoint({ store, clock }: Checkpointing, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const newest = await newestCheckpoint(store, tenant.id);
    const drafted = newest ? undefined : await draftCheckpoint(store, tenant, undefined, now);
    const row = newest ?? drafted;
    if (!row) throw new VaultError('not_found', { public: 'There is no checkpoint yet.' });
    const fact = { entity: 'log_checkpoint', id: String(row.seq) } as const;
    return {
      change: {
        ...(drafted && { insert: { checkpoints: [drafted] } }),
        entries: [entryOf(caller, now, { ...fact, operation: drafted ? 'create' : 'read' })],
      },
      reply: { status: 200, body: viewCheckpoint(tenant, row) },
    };
  };
}

/**
 * The checkpoint that follows `newest`; `undefined` when nothing but that one was logged since. Of
 * several who draft after the same one, one can store it: for the others its number is taken.
 */
export async function draftCheckpoint(
  store: Store,
  tenant: Tenant,
  newest: Row<'checkpoints'> | undefined,
  now: Instant,
): Promise<Row<'checkpoints'> | undefined> {
  const known = newest && isOwn(tenant, newest) ? openCheckpoint(newest) : undefined;
  const since = known ? known.created_at - latenessMsMax : 0;
  const knownSeqs = new Map(known?.heads.map(([stream, seq]) => [stream, seq]));
  const active: LogStream[] = [];
  for await (const stream of streamsOf(store, tenant.id)) {
    if (stream.last_at >= since) active.push(stream);
  }
  if (!active.some((stream) => hasGrown(stream, knownSeqs.get(stream.stream_id) ?? 0))) {
    return undefined;
  }
  const seq = (newest?.seq ?? 0) + 1;
  const statement: Checkpoint = {
    type: checkpointType,
    tenant_id: tenant.id,
    seq,
    created_at: now,
    previous: newest ? statementHash(newest) : null,
    heads: active.map(({ stream_id, last_seq, last_hash }) => [stream_id, last_seq, last_hash]),
  };
  const signed = signStatement(logSigningKey(tenant), statement);
  return { tenant_id: tenant.id, seq, created_at: now, ...signed };
}

/** The entry that a checkpoint leaves itself is no reason for another. */
function hasGrown({ last_seq, last_entity_type }: LogStream, knownSeq: number): boolean {
  const isTrace = last_entity_type === 'log_checkpoint' && last_seq === knownSeq + 1;
  return last_seq !== knownSeq && !isTrace;
}

/** Every stream of a tenant's log, in the order of their ids. */
export async function* streamsOf(
  store: Pick<Store, 'select'>,
  tenant: TenantId,
): AsyncGenerator<LogStream> {
  let after = '';
  for (;;) {
    const page = await store.select(logStreams({ tenant, after, streamsMax: streamsPerPage }));
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < streamsPerPage) return;
    after = last.stream_id;
  }
}

export async function newestCheckpoint(
  store: Store,
  tenant: TenantId,
): Promise<Row<'checkpoints'> | undefined> {
  const [row] = await store.select((db) =>
    db
      .selectFrom('checkpoints')
      .selectAll()
      .where('tenant_id', '=', tenant)
      .orderBy('seq', 'desc')
      .limit(1),
  );
  return row;
}

function viewCheckpoint(tenant: Tenant, row: Row<'checkpoints'>): object {
  const { tenant_id, seq, created_at, statement, signature, public_key } = row;
  return {
    tenant_id,
    seq,
    created_at: formatTimestamp(created_at),
    statement,
    signature,
    public_key,
    public_key_pem: publicKeyPem(public_key),
    public_keys: publicKeysOf(tenant),
  };
}
