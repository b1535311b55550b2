/** A stream of the log as its one writer continues it: entries become blocks, chained to those before. */
import type { TenantId } from '../../base/ids.ts';
import {
  blockMax,
  entitiesOf,
  isBlockSize,
  type LogBlock,
  lineOf,
  type WrittenEntry,
} from './block.ts';
import { type ChainHead, entryHash, seedHead } from './entries.ts';
import { type Prover, proveBlock } from './proof.ts';

/** A block, and the hash that it continues from. */
export interface ChainedBlock {
  readonly block: LogBlock;
  readonly previous: string;
}

/** What a commit is going to write. */
export interface Continuation {
  readonly blocks: readonly ChainedBlock[];
  /** Of each tenant, how far the stream has come then. */
  readonly heads: ReadonlyMap<TenantId, ChainHead>;
}

/** What of a change the log takes. */
export interface LoggedChange {
  readonly entries: readonly WrittenEntry[];
  readonly provers: readonly Prover[];
}

interface Stream {
  readonly id: string;
  readonly head: ChainHead;
}

/** Tenants whose streams a writer remembers, in some 20 MB. */
const streamsMaxDefault = 50_000;

export interface LogChainOptions {
  /** For all tenants, once there are more of them than a writer remembers; without it all are remembered. */
  readonly newStreamId?: () => string;
  readonly streamsMax?: number;
}

/** The heads of one stream per tenant, held by the one writer that owns the stream. */
export class LogChain {
  readonly #newStreamId: (() => string) | undefined;
  readonly #streamsMax: number;
  #streamId: string;
  /** Of the tenants that have entries, or whose stream is another. */
  readonly #streams = new Map<TenantId, Stream>();

  constructor(
    streamId: string,
    { newStreamId, streamsMax = streamsMaxDefault }: LogChainOptions = {},
  ) {
    this.#streamId = streamId;
    this.#newStreamId = newStreamId;
    this.#streamsMax = streamsMax;
  }

  /** Returns how the entries of some changes continue the stream. They count as written only after {@link adopt}. */
  continue(changes: readonly LoggedChange[]): Continuation {
    if (this.#streams.size > this.#streamsMax) this.#beginAnew();
    const provers = new Map<TenantId, Prover>();
    const entriesByTenant = new Map<TenantId, WrittenEntry[]>();
    for (const change of changes) {
      for (const prover of change.provers) provers.set(prover.tenant_id, prover);
      for (const entry of change.entries) {
        const known = entriesByTenant.get(entry.tenant_id);
        if (known) known.push(entry);
        else entriesByTenant.set(entry.tenant_id, [entry]);
      }
    }
    const blocks: ChainedBlock[] = [];
    const heads = new Map<TenantId, ChainHead>();
    for (const [tenant, entries] of entriesByTenant) {
      const stream = this.#streamOf(tenant);
      let { head } = stream;
      for (const piece of pieces(entries)) {
        const block = blockOf({ ...stream, head }, piece, provers.get(tenant));
        blocks.push({ block, previous: head.hash });
        head = { seq: block.last_seq, hash: block.hash };
      }
      heads.set(tenant, head);
    }
    return { blocks, heads };
  }

  /** Called when the commit is durable. */
  adopt({ heads }: Continuation): void {
    for (const [tenant, head] of heads) {
      this.#streams.set(tenant, { id: this.#streamOf(tenant).id, head });
    }
  }

  /**
   * Continues the tenants' entries in another stream, as after a start, because another writer wrote at the place
   * where the old stream was to continue. Its rows stay, so that a verification of the log finds them.
   */
  leave(tenants: Iterable<TenantId>, streamId: string): void {
    for (const tenant of tenants) {
      this.#streams.set(tenant, { id: streamId, head: seedHead(tenant, streamId) });
    }
  }

  /** A stream whose end is forgotten cannot continue, so all tenants get another one. */
  #beginAnew(): void {
    if (this.#newStreamId === undefined) return;
    this.#streams.clear();
    this.#streamId = this.#newStreamId();
  }

  #streamOf(tenant: TenantId): Stream {
    const id = this.#streamId;
    return this.#streams.get(tenant) ?? { id, head: seedHead(tenant, id) };
  }
}

function blockOf(
  { id: stream_id, head }: Stream,
  { entries, first_at, last_at }: BlockEntries,
  prover: Prover | undefined,
): LogBlock {
  let { seq, hash } = head;
  let body = '';
  let before = '';
  for (const { text } of entries) {
    hash = entryHash(hash, ++seq, text);
    body += (before === '' ? '' : '\n') + lineOf(text, before);
    before = text;
  }
  const block = {
    tenant_id: entries[0].tenant_id,
    stream_id,
    first_seq: head.seq + 1,
    last_seq: seq,
    first_at,
    last_at,
    hash,
    entities: entitiesOf(entries.map(({ terms }) => terms)),
    body,
  };
  return { ...block, proof: prover ? proveBlock(prover, block) : null };
}

interface BlockEntries {
  readonly entries: [WrittenEntry, ...WrittenEntry[]];
  /** Of all texts. */
  characters: number;
  first_at: WrittenEntry['created_at'];
  last_at: WrittenEntry['created_at'];
}

/** The entries in their order, as many together as may be in one block. */
function pieces(entries: readonly WrittenEntry[]): BlockEntries[] {
  const found: BlockEntries[] = [];
  let current: BlockEntries | undefined;
  for (const entry of entries) {
    const { created_at: at, text } = entry;
    const first_at = current && current.first_at < at ? current.first_at : at;
    const last_at = current && current.last_at > at ? current.last_at : at;
    const fits =
      current !== undefined &&
      isBlockSize(current.entries.length + 1, current.characters + text.length) &&
      last_at - first_at <= blockMax.spanMs;
    if (current && fits) {
      current.entries.push(entry);
      current.characters += text.length;
      current.first_at = first_at;
      current.last_at = last_at;
    } else {
      current = { entries: [entry], characters: text.length, first_at: at, last_at: at };
      found.push(current);
    }
  }
  return found;
}
