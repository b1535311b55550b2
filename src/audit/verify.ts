/** Verifying the log: a walk over its records that finds the first bad entry of every stream. */
import { isDeepStrictEqual } from 'node:util';
import type { TenantId } from '../base/ids.ts';
import { seedHead } from '../store/log-chain/entries.ts';
import { type Link, linkOfBlock, linkOfEntry } from '../store/log-chain/links.ts';
import { CheckpointTrail, type OpenedCheckpoint } from './checkpoint-trail.ts';
import type { LogFinding } from './finding.ts';
import { trustedKeysOf } from './key-chain.ts';
import type { LogRecord } from './records.ts';
import {
  type Checkpoint,
  type LogRemoval,
  openCheckpoint,
  openRemoval,
  type Signed,
  signersUpTo,
} from './statements.ts';
import { StreamWalk } from './stream-walk.ts';

export interface Verification {
  readonly tenants: number;
  readonly streams: number;
  readonly entries: number;
  readonly checkpoints: number;
  /** Entries that retention has removed, as signed. */
  readonly removed: number;
  /** Entries that are newer than every checkpoint: only the chain speaks for them. */
  readonly uncovered: number;
  /** The keys whose signatures were found, base64. */
  readonly publicKeys: readonly string[];
  /** The first of each stream and of each tenant's checkpoints, in the order of the log. */
  readonly findings: readonly LogFinding[];
}

export interface VerifyOptions {
  /**
   * Trusted keys, base64. Those that they introduce, or have replaced, are trusted as well. If empty, the key of the
   * first checkpoint is the trusted one.
   */
  readonly trustedKeys: readonly string[];
  /** Checkpoints stored elsewhere, which an attacker with write access to the log cannot change. */
  readonly kept: readonly KeptStatement[];
  /** To where the log of its tenant was verified before: records that follow are enough. */
  readonly from?: OpenedCheckpoint;
}

/** A checkpoint that was stored elsewhere, as it was shown. */
export interface KeptStatement extends Signed {
  readonly public_keys?: readonly string[];
}

/** A statement of a log, in its place. */
interface PendingStatement {
  readonly kind: 'checkpoint' | 'removal';
  readonly signed: Signed;
}

/** Takes records one by one; its memory grows with streams and checkpoints, not with entries. */
export class LogVerifier {
  readonly #trustedKeys: readonly string[];
  readonly #kept: readonly OpenedCheckpoint[];
  readonly #from: OpenedCheckpoint | undefined;
  readonly #trails = new Map<TenantId, CheckpointTrail>();
  readonly #removals = new Map<string, LogRemoval>();
  readonly #walks = new Map<string, StreamWalk>();
  /** Tenants whose end has not been read. */
  readonly #begun = new Set<TenantId>();
  /** Tenants whose beginning was read. */
  readonly #whole = new Set<TenantId>();
  /** Statements of a log, which precede its entries: all of them together tell which keys count. */
  #pending: PendingStatement[] = [];
  /** The keys that count for a tenant; undefined where any does. */
  readonly #keys = new Map<TenantId, ReadonlySet<string> | undefined>();
  readonly #publicKeys = new Set<string>();
  readonly #findings: LogFinding[] = [];
  #entries = 0;
  #checkpoints = 0;
  /** The stream of the last entry, which is most often the stream of the next. */
  #current: { tenant: TenantId; stream: string; walk: StreamWalk } | undefined;

  constructor({ trustedKeys, kept, from }: VerifyOptions) {
    this.#trustedKeys = trustedKeys;
    this.#from = from;
    this.#kept = kept.flatMap((signed) => {
      const checkpoint = openCheckpoint(signed);
      this.#publicKeys.add(signed.public_key);
      if (!checkpoint) this.#reportForged('kept checkpoint', 1);
      else if (!isDeepStrictEqual(signed.public_keys ?? signersUpTo(signed), signersUpTo(signed))) {
        const { tenant_id, seq } = checkpoint;
        const message = `public_keys of the kept checkpoint ${seq} are not the keys that the log introduced`;
        this.#findings.push({ kind: 'forged', tenant_id, seq, message });
      }
      return checkpoint ? [{ signed, checkpoint }] : [];
    });
  }

  get entries(): number {
    return this.#entries;
  }

  take(record: LogRecord): void {
    if (record.kind === 'checkpoint' || record.kind === 'removal') {
      this.#pending.push(record);
      return;
    }
    this.#settle();
    switch (record.kind) {
      case 'entries':
        for (const entry of record.entries) this.#takeLink(entry, linkOfEntry(entry));
        break;
      case 'blocks':
        for (const block of record.blocks) this.#takeLink(block, linkOfBlock(block));
        break;
      case 'begin':
        this.#begun.add(record.tenant_id);
        this.#whole.add(record.tenant_id);
        this.#trails.get(record.tenant_id)?.expectAll();
        break;
      case 'end':
        this.#begun.delete(record.tenant_id);
        break;
      case 'altered': {
        const { kind: _, ...place } = record;
        const message =
          'a block was altered so that its place or time is no number that the vault writes';
        this.#findings.push({ kind: 'edited', ...place, message });
        break;
      }
      case 'unreadable': {
        const message = `line ${record.line} is not as an export writes it`;
        this.#findings.push({ kind: 'unreadable', seq: record.line, message });
      }
    }
  }

  finish(): Verification {
    this.#settle();
    for (const tenant of this.#whole) this.#trailOf(tenant);
    for (const { checkpoint } of this.#kept) this.#trailOf(checkpoint.tenant_id);
    for (const [tenant, trail] of this.#trails) {
      for (const stream of trail.streams) this.#walkOf(tenant, stream);
      this.#findings.push(...listOf(trail.finish()));
    }
    let uncovered = 0;
    for (const walk of this.#walks.values()) {
      this.#findings.push(...listOf(walk.finish()));
      uncovered += walk.uncovered;
    }
    for (const tenant_id of this.#begun) {
      const message = 'the export ends before the end of the log';
      this.#findings.push({ kind: 'truncated', tenant_id, seq: this.#entries + 1, message });
    }
    let removed = 0;
    for (const { to_seq } of this.#removals.values()) removed += to_seq;
    return {
      tenants: this.#trails.size,
      streams: this.#walks.size,
      entries: this.#entries,
      checkpoints: this.#checkpoints,
      removed,
      uncovered,
      publicKeys: [...this.#publicKeys],
      findings: this.#findings,
    };
  }

  #takeLink({ tenant_id: tenant, stream_id: stream }: StreamName, link: Link): void {
    this.#entries += link.texts.length;
    if (this.#current?.stream !== stream || this.#current.tenant !== tenant) {
      this.#current = { tenant, stream, walk: this.#walkOf(tenant, stream) };
    }
    this.#current.walk.take(link);
  }

  /** Decides which keys count, and takes the statements that were read. */
  #settle(): void {
    const pending = this.#pending;
    if (pending.length === 0) return;
    this.#pending = [];
    const opened = pending.map(({ kind, signed }) => {
      this.#publicKeys.add(signed.public_key);
      return kind === 'removal'
        ? { kind, signed, removal: openRemoval(signed) }
        : { kind, signed, checkpoint: openCheckpoint(signed) };
    });
    const checkpoints = opened.flatMap((one): OpenedCheckpoint[] =>
      one.checkpoint ? [{ signed: one.signed, checkpoint: one.checkpoint }] : [],
    );
    for (const [tenant, ofTenant] of Map.groupBy(checkpoints, tenantOf)) {
      this.#keys.set(tenant, this.#keysAfter(tenant, ofTenant));
    }
    for (const one of opened) {
      if (one.kind === 'removal') this.#takeRemoval(one.signed, one.removal);
      else this.#takeCheckpoint(one.signed, one.checkpoint);
    }
  }

  /** Without a known key the first one counts, and those that it introduces. */
  #keysAfter(
    tenant: TenantId,
    checkpoints: readonly OpenedCheckpoint[],
  ): ReadonlySet<string> | undefined {
    const kept = this.#kept.filter((one) => tenantOf(one) === tenant);
    const known = this.#keys.get(tenant) ?? this.#trustedKeys;
    const given = [...known].length > 0 ? known : keysOf(kept);
    const start = [...given].length > 0 ? given : keysOf(checkpoints.slice(0, 1));
    return [...start].length > 0 ? trustedKeysOf(start, [...kept, ...checkpoints]) : undefined;
  }

  #counts(tenant: TenantId, { public_key }: Signed): boolean {
    if (!this.#keys.has(tenant)) this.#keys.set(tenant, this.#keysAfter(tenant, []));
    return this.#keys.get(tenant)?.has(public_key) ?? true;
  }

  #takeCheckpoint(signed: Signed, checkpoint: Checkpoint | undefined): void {
    this.#checkpoints++;
    if (checkpoint && this.#counts(checkpoint.tenant_id, signed)) {
      this.#trailOf(checkpoint.tenant_id).take({ signed, checkpoint });
    } else {
      this.#reportForged('checkpoint', this.#checkpoints);
    }
  }

  #takeRemoval(signed: Signed, removal: LogRemoval | undefined): void {
    if (removal && this.#counts(removal.tenant_id, signed)) {
      this.#removals.set(`${removal.tenant_id} ${removal.stream_id}`, removal);
    } else {
      this.#reportForged('removal', this.#removals.size + 1);
    }
  }

  #reportForged(what: string, seq: number): void {
    const message = `the signature of ${what} number ${seq} is wrong, or by a key that is not trusted`;
    this.#findings.push({ kind: 'forged', seq, message });
  }

  #trailOf(tenant: TenantId): CheckpointTrail {
    const known = this.#trails.get(tenant);
    if (known) return known;
    const kept = this.#kept.filter((one) => tenantOf(one) === tenant);
    const counted = kept.filter(({ signed }) => this.#counts(tenant, signed));
    if (counted.length < kept.length) this.#reportForged('kept checkpoint', 1);
    const from = this.#from && tenantOf(this.#from) === tenant ? this.#from : undefined;
    const trail = new CheckpointTrail(tenant, counted, from);
    if (this.#whole.has(tenant)) trail.expectAll();
    this.#trails.set(tenant, trail);
    return trail;
  }

  #walkOf(tenant: TenantId, id: string): StreamWalk {
    const name = `${tenant} ${id}`;
    const known = this.#walks.get(name);
    if (known) return known;
    const trail = this.#trailOf(tenant);
    const removal = this.#removals.get(name);
    const removed = removal && { seq: removal.to_seq, hash: removal.last_hash };
    const verified = trail.startOf(id);
    const later = verified && verified.seq > (removed?.seq ?? 0) ? verified : removed;
    const start = later ?? seedHead(tenant, id);
    const options = { tenant, id, start, known: trail.headsOf(id) };
    const walk = new StreamWalk({ ...options, checkpointedAt: trail.newestAt });
    this.#walks.set(name, walk);
    return walk;
  }
}

interface StreamName {
  readonly tenant_id: TenantId;
  readonly stream_id: string;
}

function listOf<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}

function tenantOf({ checkpoint }: OpenedCheckpoint): TenantId {
  return checkpoint.tenant_id;
}

function keysOf(checkpoints: readonly OpenedCheckpoint[]): readonly string[] {
  return checkpoints.map(({ signed }) => signed.public_key);
}
