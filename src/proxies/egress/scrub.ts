/** Takes values out of a response as it streams: they are overwritten with asterisks, so that lengths stay right. */
import { Transform, type TransformCallback } from 'node:stream';
import {
  createMeter,
  endOfMatch,
  nextBegin,
  type Pay,
  type ValuePatterns,
} from './value-patterns.ts';
import { type FramePart, frameOf, MessageFrames, WebSocketReader } from './websocket-frames.ts';

/** More than what any value that was cut into pieces needs. */
const heldBytes = 8_192;
const lineBytesMax = 65_536;
/** A message that comes byte by byte is not sent on so. */
const fragmentBytesMin = 8_192;
/** What a chunk and a frame cost besides the search in them, in milliseconds: they may have no byte to search. */
const chunkMs = 0.02;
const frameMs = 0.01;
/** Between turns of others. */
const framesOfPart = 64;

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

export interface CountedScrubbing extends ValueScrubbing {
  readonly onFound: (count: number) => void;
}

/** Each by itself. */
export async function scrubTexts(
  scrubbing: CountedScrubbing,
  texts: readonly string[],
): Promise<readonly string[]> {
  const scrubbed: string[] = [];
  for (const text of texts) {
    const { text: one, found } = await scrub(scrubbing, text, { from: 0, to: text.length });
    scrubbed.push(one);
    if (found > 0) scrubbing.onFound(found);
  }
  return scrubbed;
}

/** A text that comes in parts, of which the last are held back. */
class HeldText {
  readonly #scrubbing: CountedScrubbing;
  #held = '';
  /** How much of what is held is overwritten already. */
  #done = 0;

  constructor(scrubbing: CountedScrubbing) {
    this.#scrubbing = scrubbing;
  }

  get length(): number {
    return this.#held.length;
  }

  add(chunk: Buffer): void {
    this.#held += chunk.toString('latin1');
  }

  endOfLines(): number {
    return this.#held.lastIndexOf('\n') + 1;
  }

  async pass(to: number): Promise<Buffer> {
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

export interface ResponseScrubbing extends CountedScrubbing {
  /** Whether its lines are messages, which pass at once. */
  readonly isOfLines: boolean;
  /** When its last byte was read. */
  readonly onRead: () => Promise<void>;
}

/**
 * How much it holds back doesn't depend on the values. If it held back what may be the beginning of a value, a program
 * whose destination streams text of its choice would see which of its guesses begins one.
 */
export class Scrub extends Transform {
  readonly #scrubbing: ResponseScrubbing;
  readonly #held: HeldText;

  constructor(scrubbing: ResponseScrubbing) {
    super();
    this.#scrubbing = scrubbing;
    this.#held = new HeldText(scrubbing);
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#received(chunk).then((passed) => done(null, passed), done);
  }

  override _flush(done: TransformCallback): void {
    this.#last().then((passed) => done(null, passed), done);
  }

  async #last(): Promise<Buffer | undefined> {
    await this.#scrubbing.onRead();
    return this.#pass(this.#held.length);
  }

  async #received(chunk: Buffer): Promise<Buffer | undefined> {
    await this.#scrubbing.pay(chunkMs);
    this.#held.add(chunk);
    return this.#pass(this.#passing());
  }

  #passing(): number {
    const { length } = this.#held;
    if (!this.#scrubbing.isOfLines) return Math.max(0, length - heldBytes);
    return Math.max(this.#held.endOfLines(), length - lineBytesMax);
  }

  async #pass(to: number): Promise<Buffer | undefined> {
    return to === 0 ? undefined : this.#held.pass(to);
  }
}

/**
 * Messages of a WebSocket, each by itself. Of a message that is not whole yet, as much is held back as of a response;
 * what is longer is sent on in frames of other lengths, between which pings and closes pass.
 */
export class ScrubFrames extends Transform {
  readonly #scrubbing: CountedScrubbing;
  readonly #reader = new WebSocketReader('server');
  readonly #held: HeldText;
  readonly #frames = new MessageFrames();
  #control: readonly Buffer[] = [];

  constructor(scrubbing: CountedScrubbing) {
    super();
    this.#scrubbing = scrubbing;
    this.#held = new HeldText(scrubbing);
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#scrubbed(chunk).then((passed) => done(null, passed), done);
  }

  async #scrubbed(chunk: Buffer): Promise<Buffer> {
    const { pay } = this.#scrubbing;
    const passed: Buffer[] = [];
    let frames = 0;
    for (const part of this.#reader.read(chunk)) {
      const frame = part.frame.isControl
        ? await this.#ofControl(part)
        : await this.#ofMessage(part);
      if (frame) passed.push(frame);
      frames += 1;
      if (frames % framesOfPart === 0) await pay(framesOfPart * frameMs);
    }
    await pay(chunkMs + (frames % framesOfPart) * frameMs);
    return Buffer.concat(passed);
  }

  async #ofControl({ frame, payload, isLast }: FramePart): Promise<Buffer | undefined> {
    this.#control = [...this.#control, payload];
    if (!isLast) return undefined;
    const [text = ''] = await scrubTexts(this.#scrubbing, [
      Buffer.concat(this.#control).toString('latin1'),
    ]);
    this.#control = [];
    return frameOf(frame, Buffer.from(text, 'latin1'));
  }

  async #ofMessage({ frame, payload, isFirst, isLast }: FramePart): Promise<Buffer | undefined> {
    if (isFirst) this.#frames.begin(frame);
    this.#held.add(payload);
    const { length } = this.#held;
    const isEnd = isLast && frame.isFinal;
    const to = isEnd ? length : length - heldBytes;
    if (!isEnd && to < fragmentBytesMin) return undefined;
    return this.#frames.next(await this.#held.pass(to), isEnd);
  }
}
