/** Messages on the pipes to and from a child process: a length, a kind, and JSON. */

/** Requests of the child have a number, which replies repeat. */
export const frameKinds = {
  /** To the child. */
  modules: 1,
  call: 2,
  reply: 3,
  /** No call is running, so unused memory goes back to the system. */
  rest: 4,
  /** From the child. */
  ready: 11,
  log: 12,
  request: 13,
  result: 14,
  /** The code is idle until a reply. Contains the number of replies that the child has read. */
  waiting: 15,
} as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

export interface Frame {
  readonly kind: number;
  readonly payload: Buffer;
}

export const frameHeaderBytes = 5;

export function frame(kind: FrameKind, payload: string): Buffer {
  const length = Buffer.byteLength(payload);
  const bytes = Buffer.allocUnsafe(frameHeaderBytes + length);
  bytes.writeUInt32LE(length, 0);
  bytes.writeUInt8(kind, 4);
  bytes.write(payload, frameHeaderBytes);
  return bytes;
}

/** @throws FrameError before it buffers a payload that is too large for its kind, or of an unknown kind. */
export class FrameReader {
  readonly #bytesMax: Readonly<Record<number, number>>;
  #chunks: Buffer[] = [];
  #length = 0;

  /** Maximum payload sizes by kind; other kinds are refused. */
  constructor(bytesMax: Readonly<Record<number, number>>) {
    this.#bytesMax = bytesMax;
  }

  /** Calls `onFrame` for each complete frame. */
  read(chunk: Buffer, onFrame: (frame: Frame) => void): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    for (;;) {
      if (this.#length < frameHeaderBytes) return;
      const header = this.#joined(frameHeaderBytes);
      const kind = header.readUInt8(4);
      const length = header.readUInt32LE(0);
      const lengthMax = this.#bytesMax[kind];
      if (lengthMax === undefined || length > lengthMax) throw new FrameError(kind);
      if (this.#length < frameHeaderBytes + length) return;
      const all = this.#joined(frameHeaderBytes + length);
      const rest = all.subarray(frameHeaderBytes + length);
      this.#chunks = rest.length > 0 ? [rest] : [];
      this.#length = rest.length;
      onFrame({ kind, payload: all.subarray(frameHeaderBytes, frameHeaderBytes + length) });
    }
  }

  /** Joins chunks until the first has at least this many bytes. Only a complete frame is copied. */
  #joined(bytes: number): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= bytes) return first;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}

export class FrameError extends Error {
  readonly kind: number;

  constructor(kind: number) {
    super('a frame has an unknown kind or is too large');
    this.kind = kind;
  }
}
