/** Reads lines of files and responses of any length. */
import { linesOf } from '../../http/protocol/lines.ts';
import { streamGivenFile } from '../terminal/given-text.ts';
import { ResponseError } from '../terminal/response-error.ts';

/** Longer than any line a vault takes or gives, a token of 1 MiB with its mask and its expressions. */
const lineBytesMax = 16 * 1024 * 1024;

export async function* textLines(source: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const lines of linesOf(source as AsyncIterable<Buffer>, lineBytesMax)) {
    for (const line of lines) {
      if (line === undefined) throw new ResponseError(`a line has more than ${lineBytesMax} bytes`);
      yield line.toString('utf8');
    }
  }
}

export async function countLines(file: string): Promise<number> {
  let count = 0;
  for await (const lines of linesOf(streamGivenFile(file), 0)) count += lines.length;
  return count;
}
