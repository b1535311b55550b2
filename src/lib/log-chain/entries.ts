/** The audit log's hash chain: what an entry is, how it is hashed, and how a stream of them grows. */
import { hash } from 'node:crypto';
import type { Instant } from '../clock.ts';
import type { TenantId } from '../ids.ts';

/** One audited fact, as decided by the rules. It names things; it never holds a value. */
export interface LogEntry {
  readonly tenant_id: TenantId;
  readonly created_at: Instant;
  readonly actor_id: string | null;
  readonly actor_type: string;
  readonly entity_type: string;
  readonly entity_id: string;
  readonly operation: string;
  readonly message: string;
  /** `success` or `denied`. */
  readonly result: string;
  /** The caller's network address. */
  readonly origin: string | null;
  readonly trace_id: string | null;
}

/** An entry, and the rows of which it is the last word. */
export interface StatedEntry extends LogEntry {
  /** What it left behind; null where it changed nothing. See `store/row-states.ts`. */
  readonly state: string | null;
}

/** An entry in its place: the `seq`-th of its tenant's stream, chained to the one before. */
export interface ChainedEntry extends StatedEntry {
  readonly stream_id: string;
  readonly seq: number;
  /** Lower-case hex of SHA-256; see {@link entryHash}. */
  readonly hash: string;
}

/** The hash before the first entry of a stream. It names the stream, so streams cannot be swapped. */
export function streamSeed(tenant: TenantId, streamId: string): string {
  return hash('sha256', JSON.stringify(['strongroom log stream', 1, tenant, streamId]));
}

/**
 * SHA-256 over the previous entry's hash and the entry's fields as one JSON array in fixed order.
 * JSON is unambiguous here: every field is a string, an integer or null, and UTF-8 follows from it.
 */
export function entryHash(previous: string, entry: Omit<ChainedEntry, 'hash'>): string {
  const fields = [
    entry.tenant_id,
    entry.stream_id,
    entry.seq,
    entry.created_at,
    entry.actor_id,
    entry.actor_type,
    entry.entity_type,
    entry.entity_id,
    entry.operation,
    entry.message,
    entry.result,
    entry.origin,
    entry.trace_id,
    // Most entries change nothing, and hash nothing for it.
    ...(entry.state ? [entry.state] : []),
  ];
  return hash('sha256', previous + JSON.stringify(fields));
}

/** How far a stream has come: its last entry, or seq 0 and the seed before the first. */
export interface ChainHead {
  readonly seq: number;
  readonly hash: string;
}

export function seedHead(tenant: TenantId, streamId: string): ChainHead {
  return { seq: 0, hash: streamSeed(tenant, streamId) };
}

/** True when the entry is the one that was written right after this head, unaltered. */
export function follows(head: ChainHead, entry: ChainedEntry): boolean {
  return entry.seq === head.seq + 1 && entry.hash === entryHash(head.hash, entry);
}

/**
 * The heads of one stream per tenant, held by the one writer that owns the stream. A `fork` is the
 * attempt to write a group: dropped when the group rolls back, adopted when it commits.
 */
export class LogChain {
  readonly #streamId: string;
  readonly #parent: LogChain | undefined;
  readonly #heads = new Map<TenantId, ChainHead>();

  constructor(streamId: string, parent?: LogChain) {
    this.#streamId = streamId;
    this.#parent = parent;
  }

  append(entry: StatedEntry): ChainedEntry {
    const head = this.#headOf(entry.tenant_id);
    const placed = { ...entry, stream_id: this.#streamId, seq: head.seq + 1 };
    const chained = { ...placed, hash: entryHash(head.hash, placed) };
    this.#heads.set(entry.tenant_id, chained);
    return chained;
  }

  fork(): LogChain {
    return new LogChain(this.#streamId, this);
  }

  adopt(fork: LogChain): void {
    for (const [tenant, head] of fork.#heads)
      this.#heads.set(tenant, { seq: head.seq, hash: head.hash });
  }

  #headOf(tenant: TenantId): ChainHead {
    const own = this.#heads.get(tenant);
    if (own) return own;
    if (this.#parent) return this.#parent.#headOf(tenant);
    return seedHead(tenant, this.#streamId);
  }
}
