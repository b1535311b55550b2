/**
 * Pushing the log to the operator's collector, at least once. What is pushed is read from the database, behind a place
 * that is stored there once the collector has confirmed everything before it. So nothing is lost when a server is
 * killed, when the collector is down, or where another process wrote the entries.
 */
import { type Clock, type Instant, instantAfter, second } from '../../base/clock.ts';
import type { TenantId } from '../../base/ids.ts';
import { createGrowingPause } from '../../base/pauses.ts';
import { proveRow, rowProven } from '../../keys/row-proof.ts';
import type { Leases } from '../../queue/leases.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { ChainedEntry } from '../../store/log-chain/entries.ts';
import { dueWork } from '../../store/queries/due-tenants.ts';
import { pushedPlaces } from '../../store/queries/log-pushes.ts';
import { type LogStream, type LogStreamPage, logStreams } from '../../store/queries/log-streams.ts';
import { nextTenantWithLogs } from '../../store/queries/tenants.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { formatEntry } from '../records.ts';
import { readStream } from './stream-pages.ts';

/** An entry, and the line that an export of the log has for it. */
export interface PushedEntry {
  readonly entry: ChainedEntry;
  readonly line: string;
}

/** The collector. */
export interface Receiver {
  /**
   * Resolves once the collector has confirmed all entries, and rejects otherwise: then they are sent again.
   * @throws BatchRefused for what it never takes in this form.
   */
  deliver(entries: readonly PushedEntry[], signal: AbortSignal): Promise<void>;
}

/** The collector is there, and refuses these entries: they are too many, too long, or have a text that it forbids. */
export class BatchRefused extends Error {
  override readonly name = 'BatchRefused';
}

export interface LogPush {
  /** Takes what this server committed. Returns at once. */
  readonly take: (entries: readonly Pick<ChainedEntry, 'tenant_id' | 'stream_id'>[]) => void;
  /** How old the oldest entry of the batch is that the collector has not confirmed; 0 when nothing waits. */
  readonly lagMs: () => number;
  /** Since when no batch was confirmed, while batches fail. */
  readonly failingSince: () => Instant | undefined;
  /** Tries what waits once more, briefly. What is left is pushed after the next start, or by another server. */
  close(): Promise<void>;
}

export interface LogPushTools {
  readonly store: Store;
  /** Whose keys prove how far each stream was pushed. */
  readonly tenants: Pick<Tenants, 'find'>;
  readonly clock: Clock;
  readonly receiver: Receiver;
  /** A stream to which nobody has written for so long has no server that pushes it. */
  readonly abandonedMs: number;
  /** By which one server looks after streams that no living server writes. */
  readonly leases: Pick<Leases, 'hold' | 'release'>;
  readonly onFailure: (error: unknown) => void;
  /** Resolves after that time, and at once when the signal is aborted. */
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

const batchMax = { entries: 1_000, characters: 1_000_000 };
/** Entries that follow one another closely go together. */
const gatherMs = second / 4;
/** Another look for what other servers and commands have written. */
const lookMs = 15 * second;
/** A tenant with an entry that the collector refuses waits for so long, and holds up no other. */
const refusedMs = 30 * second;
const failurePauses = { firstMs: second, maxMs: 30 * second };
const closeMsMax = 3 * second;
const tenantsPerPage = 50;
const streamsPerPage = 100;

type Streams = Set<string>;

interface PushBatch {
  readonly entries: PushedEntry[];
  characters: number;
  readonly entriesMax: number;
  /** What it may hold with those of the tenant that fills it now. */
  upTo: { readonly entries: number; readonly characters: number };
  /** The rows to store once it is confirmed, and what is stored now. */
  readonly places: { readonly row: Row<'log_pushes'>; readonly before: number | undefined }[];
  /** What it was made of, to be looked at again if it fails, or if it has no room for all. */
  readonly streams: { readonly tenant: TenantId; readonly stream: string }[];
}

export function startLogPush(tools: LogPushTools): LogPush {
  const { store, clock, receiver, abandonedMs, leases, onFailure, pause } = tools;
  const closing = new AbortController();
  /** Streams of which this server knows that they have grown. */
  const grown = new Map<TenantId, Streams>();
  /** Tenants of which other streams may have grown, and from when on to look. */
  const toLookAt = new Map<TenantId, number>();
  let wake: () => void = () => undefined;
  let oldestAt: number | undefined;
  let failingSince: Instant | undefined;
  let entriesMax = batchMax.entries;
  /** Tenants with an entry that was refused by itself, and when it is sent again. */
  const refused = new Map<TenantId, Instant>();

  function note(tenant: TenantId, stream: string): void {
    const known = grown.get(tenant);
    if (known) known.add(stream);
    else grown.set(tenant, new Set([stream]));
  }

  /** Every tenant after a start: a server may have been killed with a batch under way. Then those that have grown. */
  async function findEveryTenant(): Promise<void> {
    let after: TenantId | undefined;
    while (!closing.signal.aborted) {
      const page = await store.select(nextTenantWithLogs('logs', after, tenantsPerPage));
      const ids = new Set(page.map(({ tenant_id }) => tenant_id));
      for (const tenant of ids) toLookAt.set(tenant, clock.now());
      after = page.at(-1)?.tenant_id;
      if (after === undefined) return;
    }
  }

  async function findGrownTenants(): Promise<void> {
    const now = clock.now();
    for await (const notes of dueWork(store, { work: 'checkpoint', until: now })) {
      for (const { tenant_id } of notes) {
        if (!toLookAt.has(tenant_id)) toLookAt.set(tenant_id, now);
      }
    }
  }

  /** Adds the tenant's streams that no server pushes to those that have grown, if no other server does so. */
  async function look(tenant: TenantId): Promise<void> {
    const now = clock.now();
    toLookAt.delete(tenant);
    const places = await placesOf(tools, tenant);
    const abandoned: string[] = [];
    for await (const { stream_id, last_seq, last_at } of streamsOf(tenant)) {
      const seq = places.get(stream_id)?.after ?? 0;
      places.delete(stream_id);
      if (last_seq <= seq) continue;
      if (now - last_at >= abandonedMs) abandoned.push(stream_id);
      else toLookAt.set(tenant, now + abandonedMs);
    }
    // Retention has removed these streams.
    if (places.size > 0)
      await store.record({ remove: { log_pushes: [...places.values()].map(({ row }) => row) } });
    if (abandoned.length === 0) return;
    if (await leases.hold(tenant)) for (const stream of abandoned) note(tenant, stream);
    else toLookAt.set(tenant, now + lookMs);
  }

  async function* streamsOf(tenant: TenantId): AsyncGenerator<LogStream> {
    let after: string | undefined = '';
    while (after !== undefined) {
      const page: LogStreamPage = { tenant, after, streamsMax: streamsPerPage };
      const streams: readonly LogStream[] = await store.select(logStreams(page));
      yield* streams;
      after = streams.at(-1)?.stream_id;
    }
  }

  async function lookAtAll(): Promise<void> {
    const now = clock.now();
    const due = [...toLookAt].filter(([, at]) => at <= now || at > now + lookMs);
    for (const [tenant] of due) {
      if (closing.signal.aborted) return;
      await look(tenant);
    }
  }

  /** No tenant takes more than its share of a batch while others wait, and whoever took it waits for them. */
  async function fill(batch: PushBatch): Promise<void> {
    const now = clock.now();
    const waiting = [...grown].filter(([tenant]) => !((refused.get(tenant) ?? now) > now));
    const share = (max: number) => Math.ceil(max / waiting.length);
    for (const [tenant, streams] of waiting) {
      if (isFull(batch)) return;
      batch.upTo = {
        entries: batch.entries.length + share(batch.entriesMax),
        characters: batch.characters + share(batchMax.characters),
      };
      await fillWith(batch, tenant, streams);
      grown.delete(tenant);
      if (streams.size > 0) grown.set(tenant, streams);
    }
  }

  async function fillWith(batch: PushBatch, tenant: TenantId, streams: Streams): Promise<void> {
    const places = await placesOf(tools, tenant);
    for (const stream of [...streams]) {
      await fillFrom(batch, { tenant, stream, place: places.get(stream) });
      if (isFull(batch)) return;
      streams.delete(stream);
    }
  }

  async function fillFrom(
    batch: PushBatch,
    { tenant, stream, place }: { tenant: TenantId; stream: string; place: Place | undefined },
  ): Promise<void> {
    const begin = place?.after ?? 0;
    let after = begin;
    for (;;) {
      const { entries, last } = await readStream(store, { tenant, stream_id: stream, after });
      for (const entry of entries) {
        if (isFull(batch)) break;
        const line = formatEntry(entry);
        batch.entries.push({ entry, line });
        batch.characters += line.length;
        after = entry.seq;
      }
      if (entries.length === 0 || isFull(batch)) {
        // A block that cannot be read is passed over: `logs verify` reports it.
        if (entries.length === 0) after = last;
        break;
      }
    }
    if (after === begin) return;
    const row = { tenant_id: tenant, stream_id: stream, seq: after };
    batch.places.push({ row: await provenPlace(tools, row), before: place?.row.seq });
    batch.streams.push({ tenant, stream });
  }

  /** One row after the other: on a distributed database, tenants have no transaction in common. */
  async function storePlaces({ places }: PushBatch): Promise<void> {
    for (const { row, before } of places) {
      // On a conflict, another server has pushed the same entries.
      await (before === undefined
        ? store.record({ insert: { log_pushes: [row] } })
        : store.record({ amend: { log_pushes: [{ ...row, was_seq: before }] } }));
    }
  }

  /** @returns whether anything was pushed, and more may wait. */
  async function push(signal: AbortSignal): Promise<boolean> {
    const batch: PushBatch = {
      entries: [],
      characters: 0,
      entriesMax,
      upTo: { ...batchMax, entries: entriesMax },
      places: [],
      streams: [],
    };
    try {
      await fill(batch);
      if (batch.entries.length > 0) {
        oldestAt = batch.entries.reduce(
          (oldest, { entry }) => Math.min(oldest, entry.created_at),
          Number.POSITIVE_INFINITY,
        );
        await until(signal, () => receiver.deliver(batch.entries, signal));
      }
      await storePlaces(batch);
    } catch (error) {
      for (const { tenant, stream } of batch.streams) note(tenant, stream);
      if (!(error instanceof BatchRefused)) throw error;
      entriesMax = Math.ceil(batch.entries.length / 2);
      if (batch.entries.length === 1) {
        for (const { tenant } of batch.streams)
          refused.set(tenant, instantAfter(clock.now(), refusedMs));
        failingSince ??= clock.now();
        onFailure(error);
      }
      return true;
    }
    oldestAt = undefined;
    for (const { tenant } of batch.streams) refused.delete(tenant);
    if (refused.size === 0) failingSince = undefined;
    entriesMax = Math.min(batchMax.entries, entriesMax * 2);
    return batch.entries.length > 0;
  }

  async function run(): Promise<void> {
    const failurePause = createGrowingPause(failurePauses);
    let lookedAt: number | undefined;
    while (!closing.signal.aborted) {
      try {
        if (lookedAt === undefined) await findEveryTenant();
        if (lookedAt === undefined || Math.abs(clock.now() - lookedAt) >= lookMs) {
          lookedAt = clock.now();
          await findGrownTenants();
        }
        await lookAtAll();
        if (await push(closing.signal)) continue;
        failurePause.reset();
        const woken = new AbortController();
        wake = () => woken.abort();
        if (grown.size === 0) await pause(second, AbortSignal.any([woken.signal, closing.signal]));
        wake = () => undefined;
        await pause(gatherMs, closing.signal);
      } catch (error) {
        if (closing.signal.aborted) return;
        failingSince ??= clock.now();
        onFailure(error);
        await pause(failurePause.next(), closing.signal);
      }
    }
  }

  const running = run();

  return {
    take: (entries) => {
      for (const { tenant_id, stream_id } of entries) note(tenant_id, stream_id);
      wake();
    },
    lagMs: () => (oldestAt === undefined ? 0 : Math.max(0, clock.now() - oldestAt)),
    failingSince: () => failingSince,
    close: async () => {
      closing.abort();
      await running;
      await push(AbortSignal.timeout(closeMsMax)).catch(onFailure);
      await leases.release().catch(onFailure);
    },
  };
}

/** How far a stream was pushed: its row, and the last entry of which that is certain. */
interface Place {
  readonly row: Row<'log_pushes'>;
  readonly after: number;
}

/**
 * A place that was altered outside the vault could hide entries from the collector, so its stream is pushed from the
 * beginning. An old place that was put back only repeats entries.
 */
async function placesOf(
  { store, tenants }: Pick<LogPushTools, 'store' | 'tenants'>,
  tenant: TenantId,
): Promise<Map<string, Place>> {
  const rows = await store.select(pushedPlaces(tenant));
  // A deleted tenant has no keys. What it may still log is its deletion.
  const keyring = rows.length > 0 ? (await tenants.find(tenant))?.keyring : undefined;
  const isOwn = (row: Row<'log_pushes'>) =>
    keyring === undefined ||
    (row.proof !== null && rowProven(keyring, { table, row: textOf(row), proof: row.proof }));
  return new Map(
    rows.map((row) => [row.stream_id, { row, after: isOwn(row) ? row.seq : 0 }] as const),
  );
}

async function provenPlace(
  { tenants }: Pick<LogPushTools, 'tenants'>,
  row: Omit<Row<'log_pushes'>, 'proof'>,
): Promise<Row<'log_pushes'>> {
  const tenant = await tenants.find(row.tenant_id);
  return { ...row, proof: tenant ? proveRow(tenant.keyring, table, textOf(row)) : null };
}

const table = 'log_pushes';

function textOf({ tenant_id, stream_id, seq }: Omit<Row<'log_pushes'>, 'proof'>): string {
  return JSON.stringify([tenant_id, stream_id, seq]);
}

/** Rejects when the signal is aborted: a stop does not wait for a collector that does not respond. */
async function until<T>(signal: AbortSignal, deliver: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const delivering = deliver();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([delivering, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    delivering.catch(() => undefined);
  }
}

function isFull({ entries, characters, upTo }: PushBatch): boolean {
  return entries.length >= upTo.entries || characters >= upTo.characters;
}
