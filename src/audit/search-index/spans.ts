/** Where a search by terms has to look: newest first, and nothing that the index shows to have no match. */
import { type Instant, latestInstant, parseInstant } from '../../base/clock.ts';
import type { Keyring } from '../../keys/keyring.ts';
import { type BlockEnds, earlierSlot, endsIn, slotOf } from '../../store/log-chain/postings.ts';
import { indexRows } from '../../store/queries/log-index.ts';
import type { BlockSearch } from '../../store/queries/logs.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { indexedUntil, isOwnIndexRow } from './chapter.ts';

/** What a search needs to use the index. */
export interface IndexUse {
  readonly keyring: Keyring;
  readonly now: Instant;
}

/** Blocks that end from one instant until another, both inclusive, all of them or those that end at some instants. */
export interface SearchedSpan {
  readonly from: Instant;
  readonly endBy: Instant | undefined;
  readonly ends?: readonly Instant[];
}

type Range = Pick<BlockSearch, 'tenant' | 'from' | 'endBy' | 'terms' | 'laterTerms'>;

const chaptersFirst = 3;
const chaptersMax = 64;
/** Values of one query. */
const endsMax = 64;

/**
 * Spans that together hold every block of the range with the terms. What no chapter covers is a span to go through: the
 * newest entries, and what is not indexed or was removed or altered outside the vault.
 */
export async function* spansToSearch(
  store: Pick<Store, 'select'>,
  range: Range,
  { keyring, now }: IndexUse,
): AsyncGenerator<SearchedSpan> {
  const { from, endBy } = range;
  let open = endBy ?? latestInstant;
  for await (const chapter of chaptersOf(store, range, indexedUntil(now))) {
    if (open < from || chapter.since >= open || !isWhole(chapter, range, keyring)) continue;
    if (chapter.until < open) yield scanned(next(chapter.until), open);
    // Chapters do not overlap; should they, nothing is searched twice.
    const until = parseInstant(Math.min(chapter.until, open));
    const first = parseInstant(Math.max(next(chapter.since), from));
    const ends = matchingEnds(chapter, range);
    if (ends === 'all') yield scanned(first, until);
    else yield* inParts(ends.filter((end) => end >= first && end <= until));
    open = chapter.since;
  }
  if (open >= from) yield scanned(from, open);
}

const next = (instant: Instant) => parseInstant(instant + 1);

function scanned(from: Instant, until: Instant): SearchedSpan {
  return { from, endBy: until === latestInstant ? undefined : until };
}

function* inParts(ends: readonly number[]): Generator<SearchedSpan> {
  for (let at = ends.length; at > 0; at -= endsMax) {
    const part = ends.slice(Math.max(0, at - endsMax), at).map(parseInstant);
    const [from] = part;
    if (from !== undefined) yield { from, endBy: part.at(-1), ends: part };
  }
}

interface FoundChapter {
  readonly since: Instant;
  readonly until: Instant;
  readonly rows: ReadonlyMap<number, Row<'log_index'>>;
}

/** The rows of the searched terms, chapter by chapter, newest first. */
async function* chaptersOf(
  store: Pick<Store, 'select'>,
  range: Range,
  indexed: Instant,
): AsyncGenerator<FoundChapter> {
  const { tenant, from, endBy: before = latestInstant } = range;
  const after = parseInstant(Math.max(0, from - 1));
  const search = { tenant, slots: slotsFor(range), after, before };
  let until = indexed;
  for (let chapters = chaptersFirst; ; chapters = Math.min(2 * chapters, chaptersMax)) {
    // A chapter has as many rows at most, so a full page has all rows of all chapters but its last.
    const limit = chapters * search.slots.length;
    const rows = await store.select(indexRows({ ...search, until, limit }));
    const isEnd = rows.length < limit;
    const found = [...Map.groupBy(rows, (row) => row.until)];
    for (const [end, own] of isEnd ? found : found.slice(0, -1)) {
      until = parseInstant(end - 1);
      const since = own[0]?.since ?? end;
      yield { since, until: end, rows: new Map(own.map((row) => [row.slot, row])) };
    }
    if (isEnd) return;
  }
}

function slotsFor({ terms, laterTerms }: Range): number[] {
  const slots = [...terms, ...laterTerms].map(slotOf);
  return [...new Set(laterTerms.length > 0 ? [...slots, earlierSlot] : slots)];
}

/** Each searched slot is there as the vault wrote it. */
function isWhole({ since, rows }: FoundChapter, range: Range, keyring: Keyring): boolean {
  return slotsFor(range).every((slot) => {
    const row = rows.get(slot);
    return row !== undefined && row.since === since && isOwnIndexRow(keyring, row);
  });
}

/** When blocks end that may have all of the terms. */
function matchingEnds(
  { since, until, rows }: FoundChapter,
  { terms, laterTerms }: Range,
): BlockEnds {
  const endsOf = (slot: number, term: string | undefined): BlockEnds => {
    const row = rows.get(slot);
    return row === undefined ? 'all' : endsIn({ since, until }, row.postings, term);
  };
  const earlier = laterTerms.length === 0 ? [] : endsOf(earlierSlot, undefined);
  const lists = [
    ...terms.map((term) => endsOf(slotOf(term), term)),
    ...laterTerms.map((term) => union(endsOf(slotOf(term), term), earlier)),
  ];
  return lists.reduce(intersection, 'all');
}

function intersection(one: BlockEnds, other: BlockEnds): BlockEnds {
  if (one === 'all') return other;
  if (other === 'all') return one;
  const ends = new Set(other);
  return one.filter((end) => ends.has(end));
}

function union(one: BlockEnds, other: BlockEnds): BlockEnds {
  if (one === 'all' || other === 'all') return 'all';
  return other.length === 0 ? one : [...new Set([...one, ...other])].sort((a, b) => a - b);
}
