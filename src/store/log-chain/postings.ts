/**
 * The search terms of a chapter of the log, which is all blocks that end in a span of time: for each term, when the
 * blocks end that have it. The terms are divided into slots, each of which is a row, so that a search reads one.
 */
import type { Instant } from '../../base/clock.ts';
import { sourcedMark, termCharacters, termNumber } from './block.ts';

/** By the first half of their 24 bits. */
const slotsOfTerms = 4_096;
const restBits = 12;
const restMask = (1 << restBits) - 1;

/** The slot of no term: when those blocks end that an earlier release wrote, which lack some terms. */
export const earlierSlot = slotsOfTerms;
export const slotsMax = slotsOfTerms + 1;

/** A term of more than a sixteenth of the blocks is not worth a list of them: a search looks at all of the chapter. */
const commonDivisor = 16;
/** Shorter lists are stored whatever their part of the blocks is. */
const rareMax = 64;

/** From when, exclusive, until when the blocks of a chapter end. */
export interface ChapterSpan {
  readonly since: Instant;
  readonly until: Instant;
}

/** What a chapter is made of: as the database has it. */
export interface IndexedBlock {
  readonly last_at: Instant;
  /** The search terms. */
  readonly entities: string;
}

export function slotOf(term: string): number {
  return termNumber(term) >>> restBits;
}

const restOf = (term: string) => termNumber(term) & restMask;

/** Gathers the blocks of a chapter, oldest first, and gives the postings of its slots. */
export class ChapterTerms {
  readonly #since: Instant;
  /** For each slot, when blocks end that have a term, by the rest of its number. */
  readonly #slots: readonly Map<number, number[]>[];
  #blocks = 0;

  constructor(since: Instant) {
    this.#since = since;
    this.#slots = Array.from({ length: slotsMax }, () => new Map());
  }

  add({ last_at, entities }: IndexedBlock): void {
    const at = last_at - this.#since;
    this.#blocks++;
    if (!entities.startsWith(sourcedMark)) this.#put(earlierSlot, 0, at);
    for (const term of termsIn(entities)) this.#put(term >>> restBits, term & restMask, at);
  }

  #put(slot: number, rest: number, at: number): void {
    const lists = this.#slots[slot];
    const known = lists?.get(rest);
    if (known === undefined) lists?.set(rest, [at]);
    else if (known.at(-1) !== at) known.push(at);
  }

  postingsOf(slot: number, until: Instant): Uint8Array {
    const width = widthOf({ since: this.#since, until });
    const listMax = Math.max(rareMax, Math.floor(this.#blocks / commonDivisor));
    const keys: number[] = [];
    for (const [rest, ends] of this.#slots[slot] ?? []) {
      // No block ends when the chapter begins, so that stands for all of them.
      for (const at of ends.length > listMax ? [0] : ends) keys.push(rest * width + at);
    }
    return deltasOf(keys.sort((one, two) => one - two));
  }
}

/** The terms of a block, as numbers. Where terms are not separated, any four characters may be one. */
function* termsIn(entities: string): Generator<number> {
  const isSourced = entities.startsWith(sourcedMark);
  const step = isSourced ? termCharacters : 1;
  for (let at = isSourced ? 1 : 0; at + termCharacters <= entities.length; at += step) {
    yield termNumber(entities.slice(at, at + termCharacters));
  }
}

/** When blocks end that may have a term, oldest first. */
export type BlockEnds = 'all' | readonly number[];

/** @param term `undefined` in the slot of no term. */
export function endsIn(
  { since, until }: ChapterSpan,
  postings: Uint8Array,
  term: string | undefined,
): BlockEnds {
  const width = widthOf({ since, until });
  const first = (term === undefined ? 0 : restOf(term)) * width;
  const ends: number[] = [];
  for (const key of numbersOf(postings)) {
    if (key < first) continue;
    if (key >= first + width) break;
    if (key === first) return 'all';
    ends.push(since + key - first);
  }
  return ends;
}

/** The numbers of one term. With 12 bits of the term, they are safe integers for spans of 69 years. */
const widthOf = ({ since, until }: ChapterSpan) => until - since + 1;

/** Ascending numbers, each as its distance from the one before: seven bits a byte, the last byte with the eighth. */
function deltasOf(numbers: readonly number[]): Uint8Array {
  const bytes: number[] = [];
  let before = 0;
  for (const number of numbers) {
    let rest = number - before;
    before = number;
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push(rest % 128);
    bytes.push(rest + 128);
  }
  return Uint8Array.from(bytes);
}

function* numbersOf(bytes: Uint8Array): Generator<number> {
  let number = 0;
  let delta = 0;
  let unit = 1;
  for (const byte of bytes) {
    delta += (byte & 127) * unit;
    unit *= 128;
    if (byte < 128) continue;
    number += delta;
    yield number;
    delta = 0;
    unit = 1;
  }
}
