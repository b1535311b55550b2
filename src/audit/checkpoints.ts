/** Checkpoints: signed statements of how far every stream of a tenant's log has grown. */

import { type Clock, day, type Instant, minute, parseInstant, second } from '../base/clock.ts';
import { formatTimestamp } from '../base/dates.ts';
import { integrityError, VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { publicKeyPem } from '../keys/signing.ts';
import type { Caller } from '../rules/caller.ts';
import { entryOf, systemEntry } from '../rules/log-entries.ts';
import type { Decide } from '../rules/operation.ts';
import type { Tenant, TenantKeys, Tenants } from '../rules/tenant.ts';
import { haveBlockSize, textsOf } from '../store/log-chain/block.ts';
import { factsOf, type LogEntry } from '../store/log-chain/entries.ts';
import { createFailures } from '../store/per-tenant/failures.ts';
import { byTenant, sideBySide } from '../store/per-tenant/record.ts';
import { workOfTenant } from '../store/queries/due.ts';
import { dueWork } from '../store/queries/due-tenants.ts';
import { newestCheckpoint as checkpointQuery } from '../store/queries/log-statements.ts';
import { blocksBeyond, type LogStream, logStreams } from '../store/queries/log-streams.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { noteEndsMs } from './growth.ts';
import { nameOf, type OwnNotes } from './own-notes.ts';
import {
  type Checkpoint,
  checkpointType,
  isOwn,
  logSigningKey,
  openCheckpoint,
  publicKeyOf,
  publicKeysBefore,
  publicKeysOf,
  type Signed,
  signersUpTo,
  signStatement,
  statementHash,
} from './statements.ts';

export interface Checkpointing {
  readonly store: Store;
  readonly clock: Clock;
}

/**
 * A stream is named again until its newest entry is this much older than the previous checkpoint. No entry
 * is missed if its commit and the difference between the clocks of servers take no longer than this.
 */
const latenessMsMax = day;

const streamsPerPage = 200;

/** Their commits are one group, and so one wait for the disk; most connections are left to requests. */
const signedAtOnce = 4;

/** On request, a checkpoint is signed at the earliest this long after the previous one. */
export const signedEveryMs = second;

/** More entries than these are worth a checkpoint, though all are about checkpoints. */
export const tracesMax = 100;

export interface CheckpointWriting extends Checkpointing {
  readonly tenants: Tenants;
  /** In memory, next to those in the database. */
  readonly ownNotes?: OwnNotes;
}

/** A server whose clock is ahead by less than the margin does not remove a note of another server this young. */
const youngMsMax = noteEndsMs - 5 * minute;

/**
 * Signs a checkpoint for each tenant whose log has grown. Returns how many.
 *
 * @throws VaultError `integrity`, once all others are signed, for a log whose rows were altered, and when a note
 * that this process wrote is gone: without that note nothing would be signed after a restart.
 */
export async function writeCheckpoints(
  tools: CheckpointWriting,
  stopping: AbortSignal,
): Promise<number> {
  const { store, clock, ownNotes } = tools;
  // The notes that were in the database before it is queried.
  const missing = new Map(ownNotes?.all());
  const started = clock.now();
  const failures = createFailures(store);
  const seen = new Set<TenantId>();
  let written = 0;
  const sign = async (tenant: TenantId): Promise<boolean> => {
    if (seen.has(tenant)) return false;
    seen.add(tenant);
    const isSigned = (await failures.attempt(() => writeCheckpoint(tools, tenant))) ?? false;
    if (isSigned) written++;
    return isSigned;
  };
  await failures.attempt(async () => {
    for await (const notes of dueWork(store, { work: 'checkpoint', until: started })) {
      await sideBySide(notes, signedAtOnce, async (note) => {
        if (stopping.aborted) return;
        missing.delete(nameOf(note));
        await sign(note.tenant_id);
      });
      if (stopping.aborted) return;
      const due_work = notes.filter(({ due_at }) => due_at <= started - noteEndsMs);
      // On a conflict, another server has removed some of them. The next run removes the rest.
      await byTenant(due_work, (rows) => store.record({ remove: { due_work: rows } }));
    }
  });
  for (const note of missing.values()) {
    if (stopping.aborted) return written;
    const { tenant_id, due_at } = note;
    const stored = await store.select(workOfTenant(tenant_id, 'checkpoint'));
    if (stored.some((one) => one.due_at === due_at)) continue;
    const isSigned = await sign(tenant_id);
    // Another server may have signed for an older note, and removed it.
    if (!isSigned && due_at <= started - youngMsMax) continue;
    failures.add(noteGone(tenant_id));
    if (due_at > started - noteEndsMs) await store.record({ insert: { due_work: [note] } });
  }
  if (stopping.aborted) return written;
  ownNotes?.forget(parseInstant(Math.max(0, started - noteEndsMs)));
  failures.report();
  return written;
}

function noteGone(tenant: TenantId): VaultError {
  return integrityError(
    `the note that the log of tenant ${tenant} has grown is not in the database any more: it was removed ` +
      'outside the vault, or lost in a failover. What remains of the log is signed all the same',
    { altered: { entity: 'log', id: tenant } },
  );
}

/**
 * False when there is nothing to sign, or another server was faster.
 *
 * @param onGrown called where there is something, before the signing, which leaves a note itself.
 */
export async function writeCheckpoint(
  { store, clock, tenants }: CheckpointWriting,
  tenant_id: TenantId,
  onGrown: () => Promise<void> = async () => undefined,
): Promise<boolean> {
  const tenant = await tenants.find(tenant_id);
  const now = clock.now();
  if (!tenant) return false;
  const newest = await newestCheckpoint(store, tenant_id);
  const row = await draftCheckpoint(store, { tenant, newest, now });
  if (!row) return false;
  await onGrown();
  const entry = checkpointEntry(row);
  const { conflict } = await store.commit({ insert: { checkpoints: [row] }, entries: [entry] });
  return conflict === undefined;
}

/**
 * A checkpoint of the log as it is, signed on request. The newest one is returned if nothing
 * was logged since, and while it is younger than {@link signedEveryMs}.
 */
export function readCheckpoint({ store, clock }: Checkpointing, caller: Caller): Decide {
  const { tenant } = caller;
  return async () => {
    const now = clock.now();
    const newest = await newestCheckpoint(store, tenant.id);
    const drafted = isFresh(tenant, newest, now)
      ? undefined
      : await draftCheckpoint(store, { tenant, newest, now });
    const row = drafted ?? newest;
    if (!row) throw new VaultError('not_found', { public: 'There is no checkpoint yet.' });
    const fact = { entity: 'log_checkpoint', id: String(row.seq) } as const;
    return {
      change: {
        ...(drafted && { insert: { checkpoints: [drafted] } }),
        entries: [entryOf(caller, now, { ...fact, operation: drafted ? 'create' : 'read' })],
      },
      reply: {
        status: 200,
        body: viewCheckpoint(row, isOwn(tenant, row) ? signersUpTo(row) : publicKeysOf(tenant)),
      },
    };
  };
}

/** The entry that the vault signed a checkpoint by itself. */
export function checkpointEntry({ tenant_id, seq, created_at }: Row<'checkpoints'>): LogEntry {
  const fact = { entity: 'log_checkpoint', id: String(seq), operation: 'create' } as const;
  return systemEntry({ ...fact, tenant: tenant_id, at: created_at });
}

function isFresh(tenant: Tenant, newest: Row<'checkpoints'> | undefined, now: Instant): boolean {
  const known = newest && isOwn(tenant, newest) ? openCheckpoint(newest) : undefined;
  return known !== undefined && Math.abs(now - known.created_at) < signedEveryMs;
}

export interface CheckpointDraft {
  readonly tenant: TenantKeys;
  /** After which it follows. */
  readonly newest: Row<'checkpoints'> | undefined;
  readonly now: Instant;
  /** The public key that signs after the present one. Such a checkpoint is drafted also if nothing has grown. */
  readonly introduces?: string;
}

/**
 * The checkpoint that follows `newest`; `undefined` if only checkpoints were logged since. If several
 * servers draft after the same one, only one can store its draft: its number is then taken.
 */
export async function draftCheckpoint(
  store: Pick<Store, 'select'>,
  draft: CheckpointDraft & { readonly introduces: string },
): Promise<Row<'checkpoints'>>;
export async function draftCheckpoint(
  store: Pick<Store, 'select'>,
  draft: CheckpointDraft,
): Promise<Row<'checkpoints'> | undefined>;
export async function draftCheckpoint(
  store: Pick<Store, 'select'>,
  { tenant, newest, now, introduces }: CheckpointDraft,
): Promise<Row<'checkpoints'> | undefined> {
  const known = newest && isOwn(tenant, newest) ? openCheckpoint(newest) : undefined;
  const since = known ? known.created_at - latenessMsMax : 0;
  const knownSeqs = new Map(known?.heads.map(([stream, seq]) => [stream, seq]));
  const active: LogStream[] = [];
  for await (const stream of streamsOf(store, tenant.id)) {
    if (stream.last_at >= since) active.push(stream);
  }
  const grown = async (stream: LogStream) =>
    hasGrown(store, tenant.id, { stream, knownSeq: knownSeqs.get(stream.stream_id) ?? 0 });
  if (introduces === undefined && !(await isAny(active, grown))) return undefined;
  const seq = (newest?.seq ?? 0) + 1;
  const succeeds = publicKeysBefore(tenant);
  const statement: Checkpoint = {
    type: checkpointType,
    tenant_id: tenant.id,
    seq,
    created_at: now,
    previous: newest ? statementHash(newest) : null,
    heads: active.map(({ stream_id, last_seq, last_hash }) => [stream_id, last_seq, last_hash]),
    ...(introduces !== undefined && { introduces }),
    ...(succeeds.length > 0 && { succeeds }),
  };
  const signed = signStatement(logSigningKey(tenant), statement);
  return { tenant_id: tenant.id, seq, created_at: now, ...signed };
}

async function isAny<T>(
  values: readonly T[],
  test: (value: T) => Promise<boolean>,
): Promise<boolean> {
  for (const value of values) if (await test(value)) return true;
  return false;
}

/** Entries about signing and reading checkpoints are no reason for another checkpoint. */
async function hasGrown(
  store: Pick<Store, 'select'>,
  tenant: TenantId,
  { stream, knownSeq }: { readonly stream: LogStream; readonly knownSeq: number },
): Promise<boolean> {
  const { stream_id, last_seq } = stream;
  if (last_seq === knownSeq) return false;
  if (last_seq < knownSeq || last_seq - knownSeq > tracesMax) return true;
  const blocks = await store.select(blocksBeyond({ tenant, stream_id, after: knownSeq }));
  return blocks.some(({ first_seq, body }) => {
    const texts = textsOf(body);
    const added = texts.slice(Math.max(0, knownSeq + 1 - first_seq));
    return !haveBlockSize(texts) || !added.every(isTrace);
  });
}

/** The content of an altered entry is unknown, which is a reason for a checkpoint. */
function isTrace(text: string): boolean {
  const facts = factsOf(text);
  return facts?.entity_type === 'log_checkpoint' && facts.result === 'success';
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
  store: Pick<Store, 'select'>,
  tenant: TenantId,
): Promise<Row<'checkpoints'> | undefined> {
  const [row] = await store.select(checkpointQuery(tenant));
  return row;
}

/**
 * The checkpoints in which each key that signed introduces the next one, up to the one that signs. The one after it,
 * which a paused rotation may have introduced long ago, does not sign yet. A checkpoint that was altered or removed
 * outside the vault is left out.
 */
export async function introductionsOf(
  store: Pick<Store, 'get'>,
  tenant: TenantKeys,
): Promise<readonly Signed[]> {
  const active = tenant.keyring.activeVersion('audit');
  const signing = tenant.keyring.versions.audit.filter(({ version }) => version <= active);
  const found = await Promise.all(
    signing.map(async (version): Promise<readonly Signed[]> => {
      const { introducedBy: seq } = version;
      const row = seq && (await store.get('checkpoints', { tenant_id: tenant.id, seq }));
      if (!row || !isOwn(tenant, row)) return [];
      if (openCheckpoint(row)?.introduces !== publicKeyOf(version)) return [];
      const { statement, signature, public_key } = row;
      return [{ statement, signature, public_key }];
    }),
  );
  return found.flat();
}

/** The form in responses and in pushes, which `strongroom logs verify` reads back. */
export function viewCheckpoint(row: Row<'checkpoints'>, publicKeys: readonly string[]): object {
  const { tenant_id, seq, created_at, statement, signature, public_key } = row;
  return {
    tenant_id,
    seq,
    created_at: formatTimestamp(created_at),
    statement,
    signature,
    public_key,
    public_key_pem: publicKeyPem(public_key),
    public_keys: publicKeys,
  };
}
