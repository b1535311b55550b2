/** What happened where a stream of the log does not go on as it was written. */
import { type ChainedEntry, type ChainHead, entryHash, follows } from './entries.ts';

export type BreakKind = 'edited' | 'deleted' | 'inserted' | 'reordered';

export interface Break {
  readonly kind: BreakKind;
  /** The place of the first wrong entry, or of the first missing one. */
  readonly seq: number;
  /** How many entries are missing, when they are. */
  readonly count: number;
}

/** Entries after the break that are looked at. A wider move is still found, but reported as an edit. */
export const entriesAfterBreakMax = 256;

/**
 * Judges by what still fits. Whoever alters a log without computing its hashes again leaves entries
 * whose hash fits another place, and that place shows what was done.
 * @param head the last entry that is right.
 * @param found the entries after it; the first of them does not follow.
 * @param known hashes that checkpoints vouch for, by the place of their entry.
 */
export function explainBreak(
  head: ChainHead,
  found: readonly [ChainedEntry, ...ChainedEntry[]],
  known: readonly ChainHead[],
): Break {
  const [first, next] = found;
  const seq = head.seq + 1;
  const isCopy = found.some((entry, index) => index > 0 && entry.hash === first.hash);
  if (first.seq < seq || isCopy) return { kind: 'inserted', seq: first.seq, count: 0 };
  if (first.seq > seq) {
    const late = found.some((entry) => follows(head, entry));
    return late
      ? { kind: 'reordered', seq, count: 0 }
      : { kind: 'deleted', seq, count: first.seq - seq };
  }
  if (found.some((entry, index) => index > 0 && fits(entry, head, seq))) {
    const kind = comesFromElsewhere(found) ? 'reordered' : 'inserted';
    return { kind, seq, count: 0 };
  }
  const count = missingBefore(first, next, known);
  return count > 0 ? { kind: 'deleted', seq, count } : { kind: 'edited', seq, count: 0 };
}

/** True when the entry was written after this head, in that place, whatever its number says now. */
function fits(entry: ChainedEntry, { hash }: Pick<ChainHead, 'hash'>, seq: number): boolean {
  return entry.hash === entryHash(hash, { ...entry, seq });
}

/** True when the first entry is one of the stream that was written further on. */
function comesFromElsewhere([first, ...others]: readonly ChainedEntry[]): boolean {
  return others.some(
    (other) =>
      first !== undefined &&
      (fits(first, other, other.seq) ||
        fits(first, other, other.seq + 1) ||
        fits(first, other, first.seq + 1)),
  );
}

/** By how many places the entries from `first` on have moved up. */
function missingBefore(
  first: ChainedEntry,
  next: ChainedEntry | undefined,
  known: readonly ChainHead[],
): number {
  const vouched = known.find(({ seq, hash }) => hash === first.hash && seq > first.seq);
  if (vouched) return vouched.seq - first.seq;
  if (!next || follows(first, next)) return 0;
  for (let count = 1; count <= entriesAfterBreakMax; count++) {
    if (fits(next, first, next.seq + count)) return count;
  }
  return 0;
}
