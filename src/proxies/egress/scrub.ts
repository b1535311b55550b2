/** Takes values out of a response as it streams: they are overwritten with asterisks, so that lengths stay right. */
import { Transform, type TransformCallback } from 'node:stream';
import {
  createMeter,
  endOfMatch,
  nextBegin,
  type Pay,
  type ValuePatterns,
} from './value-patterns.ts';

/** More than what any value that was cut into pieces needs. */
const heldBytes = 8_192;
const lineBytesMax = 65_536;

interface Scrubbed {
  readonly text: string;
  readonly found: number;
  /** Where what was overwritten ends. */
  readonly end: number;
}

interface ScrubbedPart {
  readonly from: number;
  /** Values that begin before it are overwritten. */
  readonly to: number;
}

interface ValueScrubbing {
  readonly patterns: ValuePatterns;
  /** Called between parts of the text, so that no response holds up others. */
  readonly pay: Pay;
}

async function scrub(
  { patterns, pay }: ValueScrubbing,
  text: string,
  { from, to }: ScrubbedPart,
): Promise<Scrubbed> {
  const parts: string[] = [];
  let found = 0;
  let kept = 0;
  const search = { patterns, text, meter: createMeter(pay) };
  for (let at = nextBegin(search, from, to); at < to; ) {
    if (search.meter.isDue) await search.meter.pay();
    const matched = endOfMatch(search, at);
    const end = typeof matched === 'number' ? matched : await matched;
    if (end > at) {
      parts.push(text.slice(kept, at), '*'.repeat(end - at));
      found += 1;
      kept = end;
    }
    at = nextBegin(search, Math.max(end, at + 1), to);
  }
  await search.meter.pay();
  return { text: parts.join('') + text.slice(kept), found, end: Math.max(kept, from) };
}

/** @returns the text without the values, and how many were found. */
export async function scrubText(
  scrubbing: ValueScrubbing,
  text: string,
): Promise<Pick<Scrubbed, 'text' | 'found'>> {
  return scrub(scrubbing, text, { from: 0, to: text.length });
}

export interface ResponseScrubbing extends ValueScrubbing {
  /** Whether its lines are messages, which pass at once. */
  readonly isOfLines: boolean;
  readonly onFound: (count: number) => void;
  /** When its last byte was read. */
  readonly onRead: () => Promise<void>;
}

/**
 * How much it holds back doesn't depend on the values. If it held back what may be the beginning of a value, a program
 * whose destination streams text of its choice would see which of its guesses begins one.
 */
export class Scrub extends Transform {
  readonly #scrubbing: ResponseScrubbing;
  #held = '';
  /** How much of what is held is overwritten already. */
  #done = 0;

  constructor(scrubbing: ResponseScrubbing) {
    super();
    this.#scrubbing = scrubbing;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#held += chunk.toString('latin1');
    this.#pass(this.#passing()).then((passed) => done(null, passed), done);
  }

  override _flush(done: TransformCallback): void {
    this.#last().then((passed) => done(null, passed), done);
  }

  async #last(): Promise<Buffer | undefined> {
    await this.#scrubbing.onRead();
    return this.#pass(this.#held.length);
  }

  #passing(): number {
    const { length } = this.#held;
    if (!this.#scrubbing.isOfLines) return Math.max(0, length - heldBytes);
    return Math.max(this.#held.lastIndexOf('\n') + 1, length - lineBytesMax);
  }

  async #pass(to: number): Promise<Buffer | undefined> {
    if (to === 0) return undefined;
    const { text, found, end } = await scrub(this.#scrubbing, this.#held, {
      from: this.#done,
      to,
    });
    this.#held = text.slice(to);
    this.#done = Math.max(0, end - to);
    if (found > 0) this.#scrubbing.onFound(found);
    return Buffer.from(text.slice(0, to), 'latin1');
  }
}
