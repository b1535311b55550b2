/** Finding entries of the log by what they are about, newest first. */
import { type Instant, latestInstant, parseInstant } from '../base/clock.ts';
import { VaultError } from '../base/errors.ts';
import type { TenantId } from '../base/ids.ts';
import { createPause } from '../base/pauses.ts';
import {
  blockMax,
  earlierSearchedFacts,
  type LogBlock,
  openBlock,
  type SearchedFact,
  termOf,
  tracePart,
} from '../store/log-chain/block.ts';
import { disclosureOf, type Shown, type Through } from '../store/log-chain/disclosure.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import { type BlockPosition, type BlockSearch, blocksMatching } from '../store/queries/logs.ts';
import type { Store } from '../store/store.ts';
import { type IndexUse, spansToSearch } from './search-index/spans.ts';

/** The place of an entry in the list: newest first, ties by stream and position. */
export type LogPosition = readonly [at: Instant, stream: string, seq: number];

export interface LogFilter {
  readonly tenant: TenantId;
  readonly entity_type: string | undefined;
  readonly entity_id: string | undefined;
  readonly shown?: Shown | undefined;
  readonly through?: Through | undefined;
  readonly actor_id?: string | undefined;
  /** The key that was sent. */
  readonly key_id?: string | undefined;
  readonly session_id?: string | undefined;
  readonly address?: string | undefined;
  readonly operation?: string | undefined;
  readonly result?: string | undefined;
  readonly container?: string | undefined;
  /** Without the mark of a bulk request. */
  readonly trace_id?: string | undefined;
  /** By which a search finds the blocks to read. If absent, it goes through the terms of all blocks. */
  readonly index?: IndexUse | undefined;
  /** Inclusive. */
  readonly oldest: Instant;
  /** Exclusive. */
  readonly until: Instant | undefined;
}

export interface LogSearch extends LogFilter {
  /** Continues after this entry. */
  readonly after: LogPosition | undefined;
  readonly skip: number;
  readonly limit: number;
  /** Other blocks are skipped. If absent, no block is skipped. */
  readonly isOwn?: (block: LogBlock) => boolean;
  /** Other entries do not match. If absent, no further condition applies. */
  readonly where?: (entry: PlacedEntry) => boolean;
}

/** Blocks of the first page, which is nearly always the only one. */
const blocksFirst = 8;
const blocksMax = 64;
/** The approximate length of a page. One block of it is decoded at a time, and the length of a block is limited. */
const entriesPerPage = 2_000;

export function logPositionOf({ created_at, stream_id, seq }: PlacedEntry): LogPosition {
  return [created_at, stream_id, seq];
}

/**
 * Blocks come in the order in which they end, so an entry's turn has come once it is newer than the end of every block
 * that was not read. A search by entity reads only blocks that have its terms, and goes through those of
 * all others where no other request waits for it.
 * @throws VaultError `integrity` for a block that is not as the vault writes it.
 */
export async function findLogs(
  store: Pick<Store, 'select' | 'scan'>,
  search: LogSearch,
): Promise<PlacedEntry[]> {
  const range = rangeOf(search);
  const isFiltered = range.terms.length > 0 || range.laterTerms.length > 0;
  const payer = { tenant: search.tenant, name: 'logs' };
  const pause = createPause();
  let found: PlacedEntry[] = [];
  /** Newest first, and no more of them than the list can still have. */
  let pending: PlacedEntry[] = [];
  const { isOwn = () => true, index } = search;
  const spans = isFiltered && index ? spansToSearch(store, range, index) : [range];
  let { skip } = search;
  const settle = (settledAfter: number) => {
    pending.sort(newestFirst);
    const waiting = pending.findIndex((entry) => entry.created_at <= settledAfter);
    const settled = pending.splice(0, waiting === -1 ? pending.length : waiting);
    found = found.concat(settled.slice(skip));
    skip = Math.max(0, skip - settled.length);
    pending = pending.slice(0, skip + Math.max(0, search.limit - found.length));
    return found.length >= search.limit;
  };
  let limit = blocksFirst;
  for await (const span of spans) {
    let after: BlockPosition | undefined;
    for (let isEnd = false; !isEnd; ) {
      const page = blocksMatching({ ...range, ...span, after, limit });
      const blocks = await (isFiltered ? store.scan(page, payer) : store.select(page));
      after = blocks.at(-1);
      isEnd = after === undefined || blocks.length < limit;
      let decoded = 0;
      for (const block of blocks) {
        const entries = isOwn(block) ? entriesOf(block) : [];
        decoded += entries.length;
        pending.push(...entries.filter((entry) => matches(entry, search)));
        await pause();
      }
      if (settle(isEnd || after === undefined ? span.from - 1 : after.last_at)) {
        return found.slice(0, search.limit);
      }
      if (decoded === 0) continue;
      limit = Math.floor((entriesPerPage * blocks.length) / decoded);
      limit = Math.min(Math.max(limit, 1), blocksMax);
    }
  }
  settle(-1);
  return found.slice(0, search.limit);
}

type BlockRange = Omit<BlockSearch, 'after' | 'limit'>;

/** The blocks that may hold matching entries. */
function rangeOf(search: LogSearch): BlockRange {
  const { tenant, oldest, until, after } = search;
  const wanted = searchedFacts(search);
  const termsWhere = (isEarlier: boolean) =>
    wanted
      .filter(([fact]) => earlierSearchedFacts.has(fact) === isEarlier)
      .map(([fact, text]) => termOf(fact, text));
  const terms = termsWhere(true);
  const laterTerms = termsWhere(false);
  const newest = Math.min(after?.[0] ?? latestInstant, (until ?? latestInstant) - 1);
  if (newest >= latestInstant - 1) {
    return { tenant, terms, laterTerms, from: oldest, to: undefined, endBy: undefined };
  }
  const to = parseInstant(Math.max(0, newest));
  const endBy = parseInstant(Math.min(to + blockMax.spanMs, latestInstant));
  return { tenant, terms, laterTerms, from: oldest, to, endBy };
}

/** What the search names, by the terms that blocks have. */
function searchedFacts(search: LogFilter): (readonly [SearchedFact, string])[] {
  const { entity_type, entity_id, shown, through, key_id, address } = search;
  const { operation, result, container, trace_id, actor_id, session_id } = search;
  const facts = [
    ['entity_id', entity_id],
    ['entity_type', entity_type],
    ['shown', shown],
    ['through', through],
    ['actor_id', actor_id],
    ['actor_id', session_id],
    ['key_id', key_id],
    ['address', address],
    ['operation', operation],
    // Nearly every block has entries of what succeeded, and no term for it.
    ['result', result === 'success' ? undefined : result],
    ['container', container],
    ['trace_id', trace_id],
  ] as const;
  return facts.flatMap(([fact, text]) => (text === undefined ? [] : [[fact, text] as const]));
}

function entriesOf(block: LogBlock): readonly PlacedEntry[] {
  const entries = openBlock(block);
  if (entries) return entries;
  throw new VaultError('integrity', {
    public: 'A part of the audit log failed its integrity check.',
    internal: `block ${block.first_seq} of log stream ${block.stream_id} was altered outside the vault`,
  });
}

function matches(entry: PlacedEntry, search: LogSearch): boolean {
  const { oldest, until, after, where = () => true } = search;
  return (
    entry.created_at >= oldest &&
    (until === undefined || entry.created_at < until) &&
    isAbout(entry, search) &&
    isDisclosure(entry, search) &&
    (after === undefined || compare(logPositionOf(entry), after) < 0) &&
    where(entry)
  );
}

/** True for an entry with these facts; those that the search does not name match anything. */
function isAbout(entry: PlacedEntry, search: LogFilter): boolean {
  const { entity_type, entity_id, actor_id, key_id, session_id } = search;
  const { address, operation, result, container, trace_id } = search;
  const is = (wanted: string | undefined, found: string | null | undefined) =>
    wanted === undefined || wanted === found;
  return (
    is(entity_type, entry.entity_type) &&
    is(entity_id, entry.entity_id) &&
    is(actor_id, entry.actor_id) &&
    is(key_id, entry.source?.key_id) &&
    is(session_id, sessionOf(entry)) &&
    is(address, entry.origin) &&
    is(operation, entry.operation) &&
    is(result, entry.result) &&
    is(container, entry.container) &&
    is(trace_id, entry.trace_id === null ? null : tracePart(entry.trace_id))
  );
}

/** The session that did it. */
export function sessionOf({ actor_type, actor_id }: PlacedEntry): string | null {
  return actor_type === 'session' ? actor_id : null;
}

/** True for an entry with this disclosure; attributes that the search does not name match anything. */
export function isDisclosure(
  { disclosure }: Pick<PlacedEntry, 'disclosure'>,
  { shown, through }: Pick<LogFilter, 'shown' | 'through'>,
): boolean {
  if (shown === undefined && through === undefined) return true;
  const found = disclosure === null ? undefined : disclosureOf(disclosure);
  return (
    found !== undefined &&
    (shown === undefined || found.shown === shown) &&
    (through === undefined || found.through === through)
  );
}

function newestFirst(one: PlacedEntry, two: PlacedEntry): number {
  return compare(logPositionOf(two), logPositionOf(one));
}

function compare(one: LogPosition, two: LogPosition): number {
  if (one[0] !== two[0]) return one[0] - two[0];
  if (one[1] !== two[1]) return one[1] < two[1] ? -1 : 1;
  return one[2] - two[2];
}
