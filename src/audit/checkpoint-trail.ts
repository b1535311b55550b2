/** The checkpoints of one tenant: each names the one before it, and together they cover every stream. */
import { type Instant, instantAfter, minute } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import type { ChainHead } from '../store/log-chain/entries.ts';
import { type LogFinding, rangeOf } from './finding.ts';
import { type Checkpoint, type Signed, statementHash } from './statements.ts';

/** Servers that have not learned of a new key may sign with the one before for so long after its first checkpoint. */
export const replacedMsMax = 5 * minute;

const nouns: [string, string] = ['checkpoint', 'checkpoints'];

/** A checkpoint whose signature was checked. */
export interface OpenedCheckpoint {
  readonly signed: Signed;
  readonly checkpoint: Checkpoint;
}

export class CheckpointTrail {
  readonly #tenant: TenantId;
  /** By number; a log that was set back and signed again has several of one number. */
  readonly #kept: ReadonlyMap<number, readonly OpenedCheckpoint[]>;
  readonly #heads = new Map<string, ChainHead[]>();
  /** To where each stream was verified before. */
  readonly #from: ReadonlyMap<string, ChainHead>;
  #last = { seq: 0, hash: null as string | null };
  #newestAt: Instant | undefined;
  /** Keys that were introduced, with those that introduced them. */
  readonly #introducedBy = new Map<string, string>();
  /** Until when a key that was replaced may sign. */
  readonly #signsUntil = new Map<string, Instant>();
  #takenAt: Instant | undefined;
  #holdsAll = false;
  #finding: LogFinding | undefined;

  /**
   * @param kept the tenant's checkpoints that the auditor has stored.
   * @param from the last one that was verified before; the next one continues it.
   */
  constructor(tenant: TenantId, kept: readonly OpenedCheckpoint[], from?: OpenedCheckpoint) {
    this.#tenant = tenant;
    this.#from = new Map(
      from?.checkpoint.heads.map(([stream, seq, hash]) => [stream, { seq, hash }]),
    );
    if (from) {
      this.#last = { seq: from.checkpoint.seq, hash: statementHash(from.signed) };
      this.#learn(from.checkpoint);
    }
    this.#kept = Map.groupBy(kept, ({ checkpoint }) => checkpoint.seq);
    for (const { checkpoint } of kept) this.#learn(checkpoint);
  }

  /** When the newest of them was signed. */
  get newestAt(): Instant | undefined {
    return this.#newestAt;
  }

  get streams(): Iterable<string> {
    return this.#heads.keys();
  }

  /** The heads that the checkpoints name for a stream, in the order of its entries. */
  headsOf(stream: string): readonly ChainHead[] {
    return (this.#heads.get(stream) ?? []).sort((one, two) => one.seq - two.seq);
  }

  startOf(stream: string): ChainHead | undefined {
    return this.#from.get(stream);
  }

  /** A read log includes its own checkpoints, so none may be missing; collected lines have none. */
  expectAll(): void {
    this.#holdsAll = true;
  }

  take({ signed, checkpoint }: OpenedCheckpoint): void {
    const { seq, previous } = checkpoint;
    const next = this.#last.seq + 1;
    const kept = this.#kept.get(seq) ?? [];
    if (seq > next) {
      this.#report('deleted', next, `${rangeOf(nouns, next, seq - 1)} deleted`);
    } else if (seq < next) {
      this.#report('inserted', seq, `checkpoint ${seq} occurs twice`);
    } else if (previous !== this.#last.hash) {
      this.#report('edited', seq, `checkpoint ${seq} does not continue the one before it`);
    } else if (kept.some((one) => one.signed.statement !== signed.statement)) {
      this.#report('edited', seq, `checkpoint ${seq} is not the one that was kept`);
    }
    this.#last = { seq, hash: statementHash(signed) };
    this.#checkKey(signed.public_key, checkpoint);
    this.#learn(checkpoint);
  }

  /** Whoever holds a key that was replaced signs nothing with it any more. */
  #checkKey(key: string, { seq, created_at, introduces }: Checkpoint): void {
    const at = latestOf(this.#takenAt, created_at);
    const until = this.#signsUntil.get(key);
    if (until !== undefined && at > until) {
      const message = `checkpoint ${seq} is signed by a key that had been replaced`;
      this.#report('forged', seq, message);
    }
    const before = this.#introducedBy.get(key);
    if (before !== undefined && !this.#signsUntil.has(before)) {
      this.#signsUntil.set(before, instantAfter(created_at, replacedMsMax));
    }
    if (introduces !== undefined) this.#introducedBy.set(introduces, key);
    this.#takenAt = at;
  }

  /** The first thing that is wrong with them. */
  finish(): LogFinding | undefined {
    let newest = 0;
    for (const seq of this.#kept.keys()) newest = Math.max(newest, seq);
    const first = this.#last.seq + 1;
    if ((this.#holdsAll || first > 1) && newest >= first) {
      const missing = rangeOf(nouns, first, newest);
      this.#report('truncated', first, `${missing} missing; the newest was kept`);
    }
    return this.#finding;
  }

  #learn({ created_at, heads }: Checkpoint): void {
    this.#newestAt = latestOf(this.#newestAt, created_at);
    for (const [stream, seq, hash] of heads) {
      const known = this.#heads.get(stream) ?? [];
      const last = known.at(-1);
      if (last?.seq !== seq || last.hash !== hash) known.push({ seq, hash });
      this.#heads.set(stream, known);
    }
  }

  #report(kind: LogFinding['kind'], seq: number, message: string): void {
    this.#finding ??= { kind, tenant_id: this.#tenant, seq, message };
  }
}

function latestOf(one: Instant | undefined, other: Instant): Instant {
  return one === undefined || one < other ? other : one;
}
