/** The links of a stream's chain as it is verified: a block of a database, or an entry of an export. */
import type { Instant } from '../../base/clock.ts';
import { isExact, type LogBlock, textsOf } from './block.ts';
import { type ChainedEntry, type ChainHead, entryHash, textOf } from './entries.ts';

export interface Link {
  readonly first_seq: number;
  readonly last_seq: number;
  readonly first_at: Instant;
  /** Of the last entry. */
  readonly hash: string;
  readonly texts: readonly string[];
  /** False where something that no hash covers is not what follows from the texts. */
  readonly isExact: boolean;
}

export function linkOfEntry(entry: ChainedEntry): Link {
  const { seq, hash, created_at, state } = entry;
  const texts = [textOf(entry, state)];
  return { first_seq: seq, last_seq: seq, first_at: created_at, hash, texts, isExact: true };
}

export function linkOfBlock(block: LogBlock): Link {
  const { first_seq, last_seq, first_at, hash, body } = block;
  const texts = textsOf(body);
  return { first_seq, last_seq, first_at, hash, texts, isExact: isExact(block, texts) };
}

export function lengthOf({ first_seq, last_seq }: Link): number {
  return last_seq - first_seq + 1;
}

/** The hash of each entry, if the first of them were written as the `seq`-th after `previous`. */
export function hashesOf({ texts }: Link, previous: string, seq: number): string[] {
  let hash = previous;
  return texts.map((text, index) => {
    hash = entryHash(hash, seq + index, text);
    return hash;
  });
}

/** True when the link was written after this hash, in that place, whatever its number says now. */
export function fits(link: Link, { hash }: Pick<ChainHead, 'hash'>, seq: number): boolean {
  return hashesOf(link, hash, seq).at(-1) === link.hash;
}

/** True when the link is the one that was written right after this head, unaltered. */
export function follows(head: ChainHead, link: Link): boolean {
  return link.isExact && link.first_seq === head.seq + 1 && fits(link, head, link.first_seq);
}

export function headOf({ last_seq, hash }: Link): ChainHead {
  return { seq: last_seq, hash };
}
