/** Lines of a body, some at a time, however long it is: no more is held than one line and one chunk. */

/** Lines that are worked on together. */
export const linesAtOnceMax = 512;

/** A line without its end; `undefined` for one that has more bytes than a line may have. */
export type BodyLine = Buffer | undefined;

const newline = 0x0a;
const nothing = Buffer.alloc(0);

/** Parts of equal length, so that each takes equally long to process. */
function* evenParts(lines: readonly BodyLine[]): Generator<readonly BodyLine[]> {
  const parts = Math.ceil(lines.length / linesAtOnceMax);
  const length = Math.ceil(lines.length / parts);
  for (let at = 0; at < lines.length; at += length) yield lines.slice(at, at + length);
}

/** The lines that are complete, as soon as they are; the last one needs no newline. */
export async function* linesOf(
  body: AsyncIterable<Buffer>,
  lineBytesMax: number,
): AsyncGenerator<readonly BodyLine[]> {
  let begun: BodyLine = nothing;
  const grown = (part: Buffer): BodyLine => {
    if (begun === undefined || begun.length + part.length > lineBytesMax) return undefined;
    return begun.length === 0 ? part : Buffer.concat([begun, part]);
  };
  for await (const chunk of body) {
    const lines: BodyLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      lines.push(grown(chunk.subarray(start, end)));
      begun = nothing;
      start = end + 1;
    }
    begun = grown(chunk.subarray(start));
    yield* evenParts(lines);
  }
  if (begun === undefined || begun.length > 0) yield [begun];
}

export function bytesOf(lines: readonly BodyLine[]): number {
  return lines.reduce((bytes, line) => bytes + (line?.length ?? 0), 0);
}

/** The lines with a newline after each, in memory of their own; a line that is too long becomes an empty one. */
export function joined(lines: readonly BodyLine[]): Uint8Array {
  const bytes = new Uint8Array(bytesOf(lines) + lines.length);
  let end = 0;
  for (const line of lines) {
    if (line) bytes.set(line, end);
    end += line?.length ?? 0;
    bytes[end++] = newline;
  }
  return bytes;
}

/** The reverse of {@link joined}. */
export function linesIn(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(newline, start);
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return lines;
}
