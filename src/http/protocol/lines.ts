/** Lines of a body, some at a time, however long it is: no more is held than one line and one chunk. */

/** Lines that are worked on together. */
export const linesAtOnceMax = 512;

/** A line without its end; `undefined` for one that has more bytes than a line may have. */
export type BodyLine = Buffer | undefined;

const newline = 0x0a;
const nothing = Buffer.alloc(0);

/** Of even length, so that what is done with one part takes as long as what is done with the next. */
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
