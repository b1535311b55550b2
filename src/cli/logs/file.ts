/** Reading an exported log: a file, or standard input. */
import type { Readable } from 'node:stream';
import { type LogRecord, parseLine } from '../../audit/records.ts';
import type { ChainedEntry } from '../../store/log-chain/entries.ts';
import { givenBytesMax, streamGivenFile } from '../terminal/given-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

const chunkBytes = 262_144;

/** The file says nothing about any log. */
class NoLogError extends Error {
  override readonly name = 'NoLogError';
}

/**
 * The records of the file, the entries of a chunk together. `-` is standard input.
 * @throws NoLogError if none of its lines is one of an exported log.
 */
export async function* readLogFile({ stdin }: Terminal, file: string): AsyncGenerator<LogRecord> {
  let number = 0;
  let isLog = false;
  for await (const lines of linesOf(file === '-' ? stdin : streamGivenFile(file, chunkBytes))) {
    let entries: ChainedEntry[] = [];
    for (const text of lines) {
      number++;
      const record = parseLine(text, number);
      isLog ||= record.kind !== 'unreadable';
      if (record.kind === 'entries') {
        entries.push(...record.entries);
      } else {
        yield { kind: 'entries', entries };
        entries = [];
        yield record;
      }
    }
    yield { kind: 'entries', entries };
  }
  if (isLog) return;
  const name = file === '-' ? 'Standard input' : file;
  throw new NoLogError(
    number === 0
      ? `${name} is empty. It contains no exported log.`
      : `${name} is not an exported log: none of its lines was written by strongroom logs export.`,
  );
}

/** The complete lines of each chunk; the last line needs no newline. */
async function* linesOf(source: Readable): AsyncGenerator<string[]> {
  source.setEncoding('utf8');
  let rest = '';
  for await (const chunk of source as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > givenBytesMax) {
      throw new NoLogError(`a line has more than ${givenBytesMax} characters and is not read.`);
    }
    yield lines;
  }
  if (rest !== '') yield [rest];
}
