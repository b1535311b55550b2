/** Verifying the log: a walk over its records that finds the first bad entry of every stream. */
import type { TenantId } from '../base/ids.ts';
import { seedHead } from '../store/log-chain/entries.ts';
import { type Link, linkOfBlock, linkOfEntry } from '../store/log-chain/links.ts';
import { CheckpointTrail, type OpenedCheckpoint } from './checkpoint-trail.ts';
import type { LogFinding } from './finding.ts';
import type { LogRecord } from './records.ts';
import { type LogRemoval, openCheckpoint, openRemoval, type Signed } from './statements.ts';
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
  /** Trusted keys, base64; if empty, any valid signature counts. */
  readonly trustedKeys: readonly string[];
  /** Checkpoints stored elsewhere, which an attacker with write access to the log cannot change. */
  readonly kept: readonly Signed[];
}

/** Takes records one by one; its memory grows with streams and checkpoints, not with entries. */
export class LogVerifier {
  readonly #trustedKeys: ReadonlySet<string>;
  readonly #kept: readonly OpenedCheckpoint[];
  readonly #trails = new Map<TenantId, CheckpointTrail>();
  readonly #removals = new Map<string, LogRemoval>();
  readonly #walks = new Map<string, StreamWalk>();
  /** Tenants whose end has not been read. */
  readonly #begun = new Set<TenantId>();
  readonly #publicKeys = new Set<string>();
  readonly #findings: LogFinding[] = [];
  #entries = 0;
  #checkpoints = 0;
  /** The stream of the last entry, which is most often the stream of the next. */
  #current: { tenant: TenantId; stream: string; walk: StreamWalk } | undefined;

  constructor({ trustedKeys, kept }: VerifyOptions) {
    this.#trustedKeys = new Set(trustedKeys);
    this.#kept = kept.flatMap((signed) => {
      const checkpoint = this.#counts(signed) ? openCheckpoint(signed) : undefined;
      if (!checkpoint) this.#reportForged('kept checkpoint', 1);
      return checkpoint ? [{ signed, checkpoint }] : [];
    });
    for (const { checkpoint } of this.#kept) this.#trailOf(checkpoint.tenant_id);
  }

  get entries(): number {
    return this.#entries;
  }

  take(record: LogRecord): void {
    switch (record.kind) {
      case 'entries':
        for (const entry of record.entries) this.#takeLink(entry, linkOfEntry(entry));
        break;
      case 'blocks':
        for (const block of record.blocks) this.#takeLink(block, linkOfBlock(block));
        break;
      case 'begin':
        this.#begun.add(record.tenant_id);
        this.#trailOf(record.tenant_id).expectAll();
        break;
      case 'end':
        this.#begun.delete(record.tenant_id);
        break;
      case 'checkpoint':
        this.#takeCheckpoint(record.signed);
        break;
      case 'removal':
        this.#takeRemoval(record.signed);
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

  #takeCheckpoint(signed: Signed): void {
    this.#checkpoints++;
    const checkpoint = this.#counts(signed) ? openCheckpoint(signed) : undefined;
    if (checkpoint) this.#trailOf(checkpoint.tenant_id).take({ signed, checkpoint });
    else this.#reportForged('checkpoint', this.#checkpoints);
  }

  #takeRemoval(signed: Signed): void {
    const removal = this.#counts(signed) ? openRemoval(signed) : undefined;
    if (removal) this.#removals.set(`${removal.tenant_id} ${removal.stream_id}`, removal);
    else this.#reportForged('removal', this.#removals.size + 1);
  }

  #counts({ public_key }: Signed): boolean {
    this.#publicKeys.add(public_key);
    return this.#trustedKeys.size === 0 || this.#trustedKeys.has(public_key);
  }

  #reportForged(what: string, seq: number): void {
    const message = `the signature of ${what} number ${seq} is wrong, or by a key that is not trusted`;
    this.#findings.push({ kind: 'forged', seq, message });
  }

  #trailOf(tenant: TenantId): CheckpointTrail {
    const known = this.#trails.get(tenant);
    if (known) return known;
    const kept = this.#kept.filter(({ checkpoint }) => checkpoint.tenant_id === tenant);
    const trail = new CheckpointTrail(tenant, kept);
    this.#trails.set(tenant, trail);
    return trail;
  }

  #walkOf(tenant: TenantId, id: string): StreamWalk {
    const name = `${tenant} ${id}`;
    const known = this.#walks.get(name);
    if (known) return known;
    const trail = this.#trailOf(tenant);
    const removal = this.#removals.get(name);
    const start = removal ? { seq: removal.to_seq, hash: removal.last_hash } : seedHead(tenant, id);
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
