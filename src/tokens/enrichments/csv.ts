/** Comma-separated values as RFC 4180 has them, and nothing that merely looks like it. */
import { DamagedFileError } from './damaged-file.ts';

export interface CsvRecord {
  /** Where the record begins, from 1; a quoted field may go over several lines. */
  readonly line: number;
  readonly fields: readonly string[];
}

/** One field, and its separator: a comma, the end of a line, or the end of the file. */
const fieldForm = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/y;

/**
 * The records in order. A byte order mark and the last line break may be there or not.
 *
 * @throws DamagedFileError naming the line with a quote that is out of place, or never closed.
 */
export function* readCsv(text: string): Generator<CsvRecord> {
  let at = text.startsWith('\uFEFF') ? 1 : 0;
  let line = 1;
  while (at < text.length) {
    const begun = line;
    const fields: string[] = [];
    for (let separator = ','; separator === ','; ) {
      fieldForm.lastIndex = at;
      const match = fieldForm.exec(text);
      if (match === null) throw new DamagedFileError(line, 'has a quote where RFC 4180 has none');
      const [all, quoted, plain = '', end = ''] = match;
      fields.push(quoted?.replaceAll('""', '"') ?? plain);
      line += all.split('\n').length - 1;
      at += all.length;
      separator = end;
    }
    yield { line: begun, fields };
  }
}
