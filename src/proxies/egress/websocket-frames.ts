/** Frames of WebSocket (RFC 6455, section 5), without extensions, read as they come. */
import { Transform, type TransformCallback } from 'node:stream';
import type { Pay } from './value-patterns.ts';

export interface WebSocketFrame {
  readonly opcode: number;
  /** Whether it ends its message. */
  readonly isFinal: boolean;
  /** Pings, pongs, and closes may come between the frames of a message. */
  readonly isControl: boolean;
}

export interface FramePart {
  readonly frame: WebSocketFrame;
  /** The next bytes of its payload, and whether they are the first and the last. */
  readonly payload: Buffer;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

export type FrameSender = 'client' | 'server';

const [continuation, binary, close, pong] = [0, 2, 8, 10] as const;
const controlBytesMax = 125;
const nothing = Buffer.alloc(0);

export class WebSocketReader {
  readonly #sender: FrameSender;
  /** The beginning of a head. */
  #begun = nothing;
  #frame: WebSocketFrame | undefined;
  /** Bytes of its payload that are to come. */
  #left = 0;
  #isInMessage = false;

  constructor(sender: FrameSender) {
    this.#sender = sender;
  }

  /** @throws for what is not a frame, or not at its place. */
  *read(chunk: Buffer): Generator<FramePart> {
    let rest = this.#begun.length === 0 ? chunk : Buffer.concat([this.#begun, chunk]);
    this.#begun = nothing;
    while (rest.length > 0) {
      const isFirst = this.#frame === undefined;
      if (isFirst) {
        const headBytes = headBytesOf(rest);
        if (rest.length < headBytes) {
          this.#begun = Buffer.from(rest);
          return;
        }
        this.#begin(rest);
        rest = rest.subarray(headBytes);
      }
      const frame = this.#frame as WebSocketFrame | undefined;
      if (frame === undefined) return;
      const payload = rest.subarray(0, this.#left);
      rest = rest.subarray(payload.length);
      this.#left -= payload.length;
      const isLast = this.#left === 0;
      if (isLast) this.#frame = undefined;
      yield { frame, payload, isFirst, isLast };
    }
  }

  #begin(head: Buffer): void {
    const [first = 0, second = 0] = head;
    const opcode = first & 0x0f;
    const isFinal = first >= 0x80;
    const isControl = opcode >= close;
    const length = lengthOf(head);
    const isAllowed = isControl
      ? opcode <= pong && isFinal && length <= controlBytesMax
      : opcode <= binary && (opcode === continuation) === this.#isInMessage;
    if ((first & 0x70) !== 0 || !isAllowed || length > Number.MAX_SAFE_INTEGER) throw notFrames();
    if (second >= 0x80 !== (this.#sender === 'client')) throw notFrames();
    if (!isControl) this.#isInMessage = !isFinal;
    this.#frame = { opcode, isFinal, isControl };
    this.#left = length;
  }
}

function headBytesOf([, second = 0]: Buffer): number {
  const length = second & 0x7f;
  return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (second >= 0x80 ? 4 : 0);
}

function lengthOf(head: Buffer): number {
  const length = (head[1] ?? 0) & 0x7f;
  if (length === 127) return head.readUInt32BE(2) * 2 ** 32 + head.readUInt32BE(6);
  return length === 126 ? head.readUInt16BE(2) : length;
}

function notFrames(): Error {
  return new Error('what came is not a frame of WebSocket, or not at its place');
}

/** As a server sends it. */
export function frameOf(
  { opcode, isFinal }: Omit<WebSocketFrame, 'isControl'>,
  payload: Buffer,
): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length > 0xffff ? 10 : length > controlBytesMax ? 4 : 2);
  head[0] = (isFinal ? 0x80 : 0) | opcode;
  head[1] = length > 0xffff ? 127 : length > controlBytesMax ? 126 : length;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** The frames of a message that is sent on in other parts than it came. */
export class MessageFrames {
  #opcode: number = continuation;

  /** With each frame of it that comes. */
  begin({ opcode }: WebSocketFrame): void {
    if (opcode !== continuation) this.#opcode = opcode;
  }

  next(payload: Buffer, isFinal: boolean): Buffer {
    const frame = frameOf({ opcode: this.#opcode, isFinal }, payload);
    this.#opcode = continuation;
    return frame;
  }
}

/** Passes on what are frames, as they are: whatever else an end sends would be taken for requests by some hosts. */
export class CheckedFrames extends Transform {
  readonly #reader: WebSocketReader;
  readonly #pay: Pay;

  constructor(sender: FrameSender, pay: Pay) {
    super();
    this.#reader = new WebSocketReader(sender);
    this.#pay = pay;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#check(chunk).then(() => done(null, chunk), done);
  }

  async #check(chunk: Buffer): Promise<void> {
    const began = performance.now();
    // Nothing of it is kept.
    for (const _ of this.#reader.read(chunk));
    await this.#pay(performance.now() - began);
  }
}
