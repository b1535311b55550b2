/** Lines that failed: written as they were sent, so that they can be imported again, and their reasons. */
import { once } from 'node:events';
import type { WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { createPrivateFile } from '../../base/private-file.ts';

/** A line of the vault's response. */
export interface LineResponse {
  /** Absent from the line that ends a response early. */
  readonly line?: number;
  readonly status?: number;
  readonly token?: { readonly _extras?: { readonly deduplicated?: boolean } };
  readonly problem?: { readonly detail?: string; readonly errors?: object };
}

export interface FailedLines {
  readonly count: number;
  readonly file: string;
  /** One line for each of the other file, with its number in the import and the problem; no values. */
  readonly reasonsFile: string;
  /** @param line as it is in the file. */
  add(line: { readonly number: number; readonly raw: string }, answer: LineResponse): Promise<void>;
  close(): Promise<void>;
}

/**
 * Nothing is written, and nothing is overwritten, before the first line fails.
 * @param header what the lines need before them in a file of their own.
 */
export function createFailedLines(file: string, header: () => string | undefined): FailedLines {
  const reasonsFile = `${file}.reasons`;
  let files: readonly [WriteStream, WriteStream] | undefined;
  let count = 0;
  return {
    get count() {
      return count;
    },
    file,
    reasonsFile,
    add: async ({ number, raw }, { status, problem }) => {
      const isFirst = files === undefined;
      // The lines hold what the vault was to keep.
      files ??= [createPrivateFile(file), createPrivateFile(reasonsFile)];
      count += 1;
      const [lines, reasons] = files;
      const first = isFirst ? header() : undefined;
      if (raw !== '') await write(lines, `${first === undefined ? '' : `${first}\n`}${raw}\n`);
      await write(reasons, `${JSON.stringify({ line: number, status, problem })}\n`);
    },
    close: async () => {
      for (const stream of files ?? []) await finished(stream.end());
    },
  };
}

async function write(stream: WriteStream, text: string): Promise<void> {
  if (!stream.write(text)) await once(stream, 'drain');
}
