/** Takes values out of a response as it streams: they are overwritten with asterisks, so that lengths stay right. */
import { Transform, type TransformCallback } from 'node:stream';
import { endOfMatch, type ValuePatterns } from './value-patterns.ts';

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

function scrub(patterns: ValuePatterns, text: string, { from, to }: ScrubbedPart): Scrubbed {
  const parts: string[] = [];
  let found = 0;
  let kept = 0;
  for (let at = from; at < to; ) {
    const end = endOfMatch(patterns, text, at);
    if (end > at) {
      parts.push(text.slice(kept, at), '*'.repeat(end - at));
      found += 1;
      kept = end;
    }
    at = Math.max(end, at + 1);
  }
  return { text: parts.join('') + text.slice(kept), found, end: Math.max(kept, from) };
}

/** @returns the text without the values, and how many were found. */
export function scrubText(patterns: ValuePatterns, text: string): Pick<Scrubbed, 'text' | 'found'> {
  return scrub(patterns, text, { from: 0, to: text.length });
}

export interface ResponseScrubbing {
  /** Whether its lines are messages, which pass at once. */
  readonly isOfLines: boolean;
  readonly onFound: (count: number) => void;
  /** Charges what a chunk took, and waits for the next turn. */
  readonly pay: (ms: number) => Promise<void>;
}

/**
 * How much it holds back doesn't depend on the values. If it held back what may be the beginning of a value, a program
 * whose destination streams text of its choice would see which of its guesses begins one.
 */
export class Scrub extends Transform {
  readonly #patterns: ValuePatterns;
  readonly #scrubbing: ResponseScrubbing;
  #held = '';
  /** How much of what is held is overwritten already. */
  #done = 0;

  constructor(patterns: ValuePatterns, scrubbing: ResponseScrubbing) {
    super();
    this.#patterns = patterns;
    this.#scrubbing = scrubbing;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    const began = performance.now();
    this.#held += chunk.toString('latin1');
    const passed = this.#pass(this.#passing());
    this.#scrubbing.pay(performance.now() - began).then(() => done(null, passed), done);
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#pass(this.#held.length));
  }

  #passing(): number {
    const { length } = this.#held;
    if (!this.#scrubbing.isOfLines) return Math.max(0, length - heldBytes);
    return Math.max(this.#held.lastIndexOf('\n') + 1, length - lineBytesMax);
  }

  #pass(to: number): Buffer | undefined {
    if (to === 0) return undefined;
    const { text, found, end } = scrub(this.#patterns, this.#held, { from: this.#done, to });
    this.#held = text.slice(to);
    this.#done = Math.max(0, end - to);
    if (found > 0) this.#scrubbing.onFound(found);
    return Buffer.from(text.slice(0, to), 'latin1');
  }
}
