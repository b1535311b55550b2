/** Walking one stream of the log: each entry must follow the one before and agree with checkpoints. */
import { hour, type Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import { type Break, entriesAfterBreakMax, explainBreak } from '../../lib/log-chain/breaks.ts';
import { type ChainedEntry, type ChainHead, follows } from '../../lib/log-chain/entries.ts';
import { type Finding, rangeOf } from './finding.ts';

export interface StreamWalkOptions {
  readonly tenant: TenantId;
  readonly id: string;
  /** What precedes the first entry: the seed, or the last entry that retention has removed. */
  readonly start: ChainHead;
  /** What checkpoints say of the stream, in the order of its entries. */
  readonly known: readonly ChainHead[];
  /** When the newest checkpoint was signed. */
  readonly checkpointedAt: Instant | undefined;
}

/**
 * An entry that no checkpoint covers, though it is this much older than the newest one, was put
 * there later. Clocks of servers that differ by more would be reported as such entries.
 */
const latenessMsMax = hour;

const nouns: [string, string] = ['entry', 'entries'];

export class StreamWalk {
  readonly #options: StreamWalkOptions;
  #head: ChainHead;
  /** How many of the known heads were passed. */
  #passed: number;
  /** The entries from the first one on that does not follow. */
  #found: [ChainedEntry, ...ChainedEntry[]] | undefined;
  #finding: Finding | undefined;
  #uncovered = 0;

  constructor(options: StreamWalkOptions) {
    const { start, known } = options;
    this.#options = options;
    this.#head = start;
    const ahead = known.findIndex(({ seq }) => seq >= start.seq);
    this.#passed = ahead === -1 ? known.length : ahead;
    if (start.seq > 0) this.#compare();
  }

  /** Entries that are newer than every checkpoint: only the chain speaks for them. */
  get uncovered(): number {
    return this.#uncovered;
  }

  take(entry: ChainedEntry): void {
    if (this.#finding) return;
    if (this.#found) {
      this.#found.push(entry);
      if (this.#found.length > entriesAfterBreakMax) this.#explain(this.#found);
    } else if (follows(this.#head, entry)) {
      this.#head = entry;
      if (this.#passed === this.#options.known.length) this.#checkAge(entry);
      else this.#compare();
    } else {
      this.#found = [entry];
    }
  }

  /** The first thing that is wrong with the stream. */
  finish(): Finding | undefined {
    if (!this.#finding && this.#found) this.#explain(this.#found);
    const last = this.#options.known.at(-1);
    if (!this.#finding && last && this.#passed < this.#options.known.length) {
      const first = this.#head.seq + 1;
      const missing = rangeOf(nouns, first, last.seq);
      this.#report('truncated', first, `${missing}, known to a checkpoint, missing at the end`);
    }
    return this.#finding;
  }

  #compare(): void {
    for (;;) {
      const known = this.#options.known[this.#passed];
      if (known?.seq !== this.#head.seq) return;
      if (known.hash !== this.#head.hash) {
        const first = (this.#options.known[this.#passed - 1]?.seq ?? this.#options.start.seq) + 1;
        const range = rangeOf(nouns, Math.min(first, known.seq), known.seq);
        this.#report('edited', known.seq, `${range}: not as a checkpoint has recorded`);
        return;
      }
      this.#passed++;
    }
  }

  #checkAge(entry: ChainedEntry): void {
    const { checkpointedAt } = this.#options;
    this.#uncovered++;
    if (checkpointedAt === undefined || entry.created_at >= checkpointedAt - latenessMsMax) return;
    const message = `entry ${entry.seq} is older than a checkpoint that does not know of it`;
    this.#report('inserted', entry.seq, message);
  }

  #explain(found: [ChainedEntry, ...ChainedEntry[]]): void {
    const { kind, seq, count } = explainBreak(this.#head, found, this.#options.known);
    this.#report(kind, seq, messages[kind](seq, count));
    this.#found = undefined;
  }

  #report(kind: Finding['kind'], seq: number, message: string): void {
    const { tenant, id } = this.#options;
    this.#finding ??= { kind, tenant_id: tenant, stream_id: id, seq, message };
  }
}

const messages: Readonly<Record<Break['kind'], (seq: number, count: number) => string>> = {
  edited: (seq) => `entry ${seq}, or the hash of the one before it, was edited`,
  deleted: (seq, count) => `${rangeOf(nouns, seq, seq + count - 1)} deleted`,
  inserted: (seq) => `entry ${seq} was inserted later`,
  reordered: (seq) => `entry ${seq} was written in another place`,
};
