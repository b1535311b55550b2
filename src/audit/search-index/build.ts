/** Building the search index in the background, a chapter at a time: no request waits for it or pays for it. */
import { type Clock, type Instant, parseInstant } from '../../base/clock.ts';
import { createPause } from '../../base/pauses.ts';
import type { TenantKeys } from '../../rules/tenant.ts';
import { ChapterTerms, earlierSlot, slotsMax } from '../../store/log-chain/postings.ts';
import {
  blocksEnding,
  entriesEnding,
  indexedSlots,
  indexRows,
  outdatedIndexRows,
} from '../../store/queries/log-index.ts';
import type { BlockPosition } from '../../store/queries/logs.ts';
import type { Store } from '../../store/store.ts';
import { indexedUntil, isOwnIndexRow, provenIndexRow } from './chapter.ts';

/** Fewer entries than these are searched as quickly without an index. */
const chapterEntriesDefault = 131_072;

const blocksPerPage = 1_000;
const rowsPerCommit = 100;
/** Rows of the last slot among which the newest of the vault's own is looked for. */
const candidatesMax = 16;

export interface LogIndexing {
  readonly store: Pick<Store, 'select' | 'scan' | 'record'>;
  readonly clock: Clock;
  readonly chapterEntries?: number | undefined;
  /** Awaited after each commit, with the number of its rows. */
  readonly rest?: (rows: number) => Promise<void>;
}

/**
 * Adds the chapters that the tenant's log has become long enough for.
 * @returns how many entries they cover.
 */
export async function indexLog(
  tools: LogIndexing,
  tenant: TenantKeys,
  stopping: AbortSignal,
): Promise<number> {
  let indexed = 0;
  while (!stopping.aborted) {
    const covered = await addChapter(tools, tenant, stopping);
    if (covered === 0) break;
    indexed += covered;
  }
  return indexed;
}

async function addChapter(
  tools: LogIndexing,
  tenant: TenantKeys,
  stopping: AbortSignal,
): Promise<number> {
  const { store, clock, chapterEntries = chapterEntriesDefault } = tools;
  const last = indexedUntil(clock.now());
  const since = await endOfIndex(store, tenant, last);
  const span = { tenant: tenant.id, since, until: last };
  const [waiting] = await store.scan(entriesEnding(span), 'vault');
  if (Number(waiting?.count ?? 0) < chapterEntries) return 0;
  const chapter = await readChapter(tools, { tenant, since, last, chapterEntries });
  const isWritten = await writeChapter(tools, tenant, { ...chapter, stopping });
  return isWritten ? chapter.entries : 0;
}

/** The row of the last slot is written last: a chapter that has it is whole. */
async function endOfIndex(
  store: LogIndexing['store'],
  { id, keyring }: TenantKeys,
  until: Instant,
): Promise<Instant | undefined> {
  const search = { tenant: id, slots: [earlierSlot], after: parseInstant(0), until, before: until };
  const rows = await store.select(indexRows({ ...search, limit: candidatesMax }));
  return rows.find((row) => isOwnIndexRow(keyring, row))?.until;
}

interface ChapterReading {
  readonly tenant: TenantKeys;
  /** `undefined` for the first chapter. */
  readonly since: Instant | undefined;
  readonly last: Instant;
  readonly chapterEntries: number;
}

interface Chapter {
  readonly since: Instant;
  readonly until: Instant;
  readonly terms: ChapterTerms;
  readonly entries: number;
}

async function readChapter({ store }: LogIndexing, reading: ChapterReading): Promise<Chapter> {
  const { tenant, last, chapterEntries } = reading;
  const pause = createPause();
  let { since } = reading;
  let until = last;
  let terms: ChapterTerms | undefined;
  let entries = 0;
  let after: BlockPosition | undefined;
  for (;;) {
    const span = { tenant: tenant.id, since, until, after, limit: blocksPerPage };
    const blocks = await store.scan(blocksEnding(span), 'vault');
    for (const block of blocks) {
      since ??= parseInstant(Math.max(0, block.last_at - 1));
      // All blocks that end at one instant are of one chapter.
      if (entries >= chapterEntries && block.last_at > until) break;
      terms ??= new ChapterTerms(since);
      terms.add(block);
      entries += block.last_seq - block.first_seq + 1;
      if (entries >= chapterEntries) until = block.last_at;
      await pause();
    }
    after = blocks.at(-1);
    if (after === undefined || blocks.length < blocksPerPage || after.last_at > until) break;
  }
  since ??= until;
  return { since, until, terms: terms ?? new ChapterTerms(since), entries };
}

/** False when another server was faster, and when the vault stops. What is missing then is written by the next run. */
async function writeChapter(
  { store, rest = async () => undefined }: LogIndexing,
  { id, keyring }: TenantKeys,
  { since, until, terms, stopping }: Chapter & { readonly stopping: AbortSignal },
): Promise<boolean> {
  const stored = new Set((await store.select(indexedSlots(id, until))).map(({ slot }) => slot));
  const missing = Array.from({ length: slotsMax }, (_, slot) => slot).filter(
    (slot) => !stored.has(slot),
  );
  for (let at = 0; at < missing.length; at += rowsPerCommit) {
    if (stopping.aborted) return false;
    const log_index = missing.slice(at, at + rowsPerCommit).map((slot) => {
      const postings = terms.postingsOf(slot, until);
      return provenIndexRow(keyring, { tenant_id: id, slot, since, until, postings });
    });
    const { conflict } = await store.record({ insert: { log_index } });
    if (conflict !== undefined) return false;
    await rest(log_index.length);
  }
  return missing.length > 0;
}

/** Removes chapters whose blocks retention has removed. */
export async function removeOldChapters(
  { store }: Pick<LogIndexing, 'store'>,
  { id }: TenantKeys,
  before: Instant,
): Promise<void> {
  for (;;) {
    const log_index = await store.scan(outdatedIndexRows(id, before, rowsPerCommit), 'vault');
    if (log_index.length === 0) return;
    const { conflict } = await store.record({ remove: { log_index } });
    if (conflict !== undefined) return;
  }
}
