/** Walking one stream of the log: each link must follow the one before and agree with checkpoints. */
import { hour, type Instant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import { type Break, explainBreak, linksAfterBreakMax } from '../store/log-chain/breaks.ts';
import type { ChainHead } from '../store/log-chain/entries.ts';
import { follows, hashesOf, headOf, type Link } from '../store/log-chain/links.ts';
import { type LogFinding, rangeOf } from './finding.ts';

export interface StreamWalkOptions {
  readonly tenant: TenantId;
  readonly id: string;
  /** What precedes the first entry: the seed, or the last entry that retention has removed. */
  readonly start: ChainHead;
  /** The heads that checkpoints name for the stream, in the order of its entries. */
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
  /** The links from the first one on that does not follow. */
  #found: [Link, ...Link[]] | undefined;
  #finding: LogFinding | undefined;
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

  take(link: Link): void {
    if (this.#finding) return;
    if (this.#found) {
      this.#found.push(link);
      if (this.#found.length > linksAfterBreakMax) this.#explain(this.#found);
    } else if (follows(this.#head, link)) {
      this.#pass(link);
    } else {
      this.#found = [link];
    }
  }

  /** The first thing that is wrong with the stream. */
  finish(): LogFinding | undefined {
    if (!this.#finding && this.#found) this.#explain(this.#found);
    const last = this.#options.known.at(-1);
    if (!this.#finding && last && this.#passed < this.#options.known.length) {
      const first = this.#head.seq + 1;
      const missing = rangeOf(nouns, first, last.seq);
      this.#report('truncated', first, `${missing}, known to a checkpoint, missing at the end`);
    }
    return this.#finding;
  }

  /** Checkpoints name the ends of blocks, but a forged one could name an entry in between. */
  #pass(link: Link): void {
    const { known } = this.#options;
    const before = this.#head;
    this.#head = headOf(link);
    const next = known[this.#passed]?.seq ?? Number.POSITIVE_INFINITY;
    if (next < link.last_seq) {
      const hashes = hashesOf(link, before.hash, link.first_seq);
      this.#compare(({ seq }) => hashes[seq - link.first_seq]);
    } else {
      this.#compare();
    }
    if (this.#passed === known.length && known.at(-1)?.seq !== link.last_seq) this.#checkAge(link);
  }

  /** @param hashAt the hash of the entry that is known by then; `undefined` for one further on. */
  #compare(
    hashAt = ({ seq }: ChainHead) => (seq === this.#head.seq ? this.#head.hash : undefined),
  ) {
    for (;;) {
      const known = this.#options.known[this.#passed];
      const hash = known && hashAt(known);
      if (known === undefined || hash === undefined) return;
      if (known.hash !== hash) {
        const first = (this.#options.known[this.#passed - 1]?.seq ?? this.#options.start.seq) + 1;
        const range = rangeOf(nouns, Math.min(first, known.seq), known.seq);
        this.#report('edited', known.seq, `${range}: not as a checkpoint has recorded`);
        return;
      }
      this.#passed++;
    }
  }

  #checkAge({ first_seq, last_seq, first_at }: Link): void {
    const { checkpointedAt, known } = this.#options;
    const first = Math.max(first_seq, (known.at(-1)?.seq ?? 0) + 1);
    this.#uncovered += last_seq - first + 1;
    if (checkpointedAt === undefined || first_at >= checkpointedAt - latenessMsMax) return;
    const range = rangeOf(nouns, first, last_seq);
    this.#report('inserted', first, `${range}: older than a checkpoint that does not know of it`);
  }

  #explain(found: [Link, ...Link[]]): void {
    const { kind, first, last } = explainBreak(this.#head, found, this.#options.known);
    this.#report(kind, first, messages[kind](first, last));
    this.#found = undefined;
  }

  #report(kind: LogFinding['kind'], seq: number, message: string): void {
    const { tenant, id } = this.#options;
    this.#finding ??= { kind, tenant_id: tenant, stream_id: id, seq, message };
  }
}

type Describe = (first: number, last: number) => string;

const messages: Readonly<Record<Break['kind'], Describe>> = {
  edited: (first, last) =>
    first === last
      ? `entry ${first}, or the hash of the one before it, was edited`
      : `one or more of the entries ${first} to ${last}, or the hash of the one before them, was edited`,
  deleted: (first, last) => `${rangeOf(nouns, first, last)} deleted`,
  inserted: (first, last) => `${rangeOf(nouns, first, last)} inserted later`,
  reordered: (first, last) => `${rangeOf(nouns, first, last)} written in another place`,
};
