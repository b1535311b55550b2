/** Explains a break in a stream of the log: what was done to its entries. */
import type { ChainHead } from './entries.ts';
import { fits, follows, headOf, type Link, lengthOf } from './links.ts';

export type BreakKind = 'edited' | 'deleted' | 'inserted' | 'reordered';

export interface Break {
  readonly kind: BreakKind;
  /** The first wrong entry, or the first missing one. */
  readonly first: number;
  /** The last wrong entry. If several entries are proven together, it is not known which of them was altered. */
  readonly last: number;
}

/** Links after the break that are looked at. A wider move is still found, but reported as an edit. */
export const linksAfterBreakMax = 256;

/**
 * Judges by the hashes that still fit. An attacker who alters a log without recomputing its hashes leaves links whose
 * hash fits another place, and that place shows what was done.
 * @param head the last entry that is right.
 * @param found the links after it; the first of them does not follow.
 * @param known hashes of checkpoints, by the place of their entry.
 */
export function explainBreak(
  head: ChainHead,
  found: readonly [Link, ...Link[]],
  known: readonly ChainHead[],
): Break {
  const [first, next] = found;
  const seq = head.seq + 1;
  const as = (kind: BreakKind): Break => ({ kind, first: first.first_seq, last: first.last_seq });
  const isCopy = found.some((link, index) => index > 0 && link.hash === first.hash);
  if (first.first_seq < seq || isCopy) return as('inserted');
  if (first.first_seq > seq) {
    const late = found.find((link) => follows(head, link));
    return late
      ? { kind: 'reordered', first: seq, last: late.last_seq }
      : { kind: 'deleted', first: seq, last: first.first_seq - 1 };
  }
  if (found.some((link, index) => index > 0 && fits(link, head, seq))) {
    return as(comesFromElsewhere(found) ? 'reordered' : 'inserted');
  }
  const count = missingBefore(first, next, known);
  return count > 0 ? { kind: 'deleted', first: seq, last: seq + count - 1 } : as('edited');
}

/** True when the first link is one of the stream that was written further on. */
function comesFromElsewhere([first, ...others]: readonly Link[]): boolean {
  if (first === undefined) return false;
  return others.some(
    (other) =>
      fits(first, other, other.last_seq + 1) ||
      fits(first, other, other.last_seq + 1 - lengthOf(first)) ||
      fits(first, other, first.first_seq + lengthOf(other)),
  );
}

/** By how many places the entries from `first` on have moved up. */
function missingBefore(first: Link, next: Link | undefined, known: readonly ChainHead[]): number {
  const vouched = known.find(({ seq, hash }) => hash === first.hash && seq > first.last_seq);
  if (vouched) return vouched.seq - first.last_seq;
  if (!next || follows(headOf(first), next)) return 0;
  for (let count = 1; count <= linksAfterBreakMax; count++) {
    if (fits(next, first, next.first_seq + count)) return count;
  }
  return 0;
}
