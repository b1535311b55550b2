/** The records of a file to import: lines of JSON, a JSON document, or CSV, each with the line where it begins. */
import { closeSync, readSync } from 'node:fs';
import { pipeline, type Readable } from 'node:stream';
import { parse } from 'csv-parse';
import { isObject, type Json } from '../../base/json.ts';
import { UsageError } from '../terminal/command.ts';
import { openGivenFile, streamGivenFile } from '../terminal/given-text.ts';
import { textLines } from './file-lines.ts';
import { type Mapping, requestOf, requireColumns, type SourceFields, valueAt } from './mapping.ts';
import { requestLine } from './request-line.ts';

/** A record that can be sent, or what is wrong with it. */
export interface ImportRecord {
  /** The line where it begins, from 1; in a JSON document, its place in the list. */
  readonly number: number;
  /** As it is in the file. */
  readonly raw: string;
  /** The body of a request to create the token. */
  readonly text?: string;
  /** Without a value. */
  readonly problem?: string;
}

export interface ImportFile {
  readonly file: string;
  readonly mapping: Mapping | undefined;
  readonly stdin: Readable;
}

export interface OpenedRecords {
  readonly records: AsyncIterable<ImportRecord>;
  /** The first line of a CSV file, which files of its lines need as well; known from the first record on. */
  header(): string | undefined;
  close(): void;
}

const recordBytesMax = 16 * 1024 * 1024;

/** @throws UsageError, from the records, when the file is not of its kind, or lacks a column of the mapping. */
export function openRecords({ file, mapping, stdin }: ImportFile): OpenedRecords {
  let source: Readable | undefined;
  let header: string | undefined;
  const onHeader = (raw: string) => {
    header = raw;
  };
  // A file is opened when the first record is asked for: an error before that would reach nobody.
  async function* records(): AsyncGenerator<ImportRecord> {
    source = file === '-' ? stdin : streamGivenFile(file);
    yield* recordsIn(source, { file, mapping, onHeader });
  }
  return { records: records(), header: () => header, close: () => void source?.destroy() };
}

interface RecordReading {
  readonly file: string;
  readonly mapping: Mapping | undefined;
  readonly onHeader: (raw: string) => void;
}

function recordsIn(
  source: Readable,
  { file, mapping, onHeader }: RecordReading,
): AsyncGenerator<ImportRecord> {
  if (mapping === undefined) return plainLines(source);
  const kind = kindOf(file, mapping);
  if (kind === 'json') return ofDocument(source, mapping);
  if (kind === 'lines') return ofLines(source, mapping);
  const delimiter = mapping.delimiter ?? delimiterOf(file);
  return ofCsv(source, { mapping, delimiter, onHeader });
}

function kindOf(file: string, { records }: Mapping): 'csv' | 'json' | 'lines' {
  if (records !== undefined || /\.json$/i.test(file)) return 'json';
  return /\.(?:ndjson|jsonl)$/i.test(file) ? 'lines' : 'csv';
}

async function* plainLines(source: Readable): AsyncGenerator<ImportRecord> {
  let number = 0;
  for await (const raw of textLines(source)) {
    number += 1;
    const text = requestLine(raw);
    if (text !== undefined) yield { number, raw: raw.trim(), text };
  }
}

function recordOf(mapping: Mapping, number: number, raw: string, value: unknown): ImportRecord {
  if (!isObject(value as Json)) return { number, raw, problem: 'is not a JSON object' };
  return { number, raw, text: JSON.stringify(requestOf(mapping, value as SourceFields)) };
}

async function* ofLines(source: Readable, mapping: Mapping): AsyncGenerator<ImportRecord> {
  let number = 0;
  for await (const line of textLines(source)) {
    number += 1;
    const raw = line.trim();
    if (raw === '') continue;
    try {
      yield recordOf(mapping, number, raw, JSON.parse(raw));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      yield { number, raw, problem: 'is not JSON' };
    }
  }
}

/** A document is in memory as a whole: such exports are small, and large ones come as lines. */
async function* ofDocument(source: Readable, mapping: Mapping): AsyncGenerator<ImportRecord> {
  let text = '';
  for await (const part of inUtf8(source)) text += part;
  const whole = parsedDocument(text);
  const list = mapping.records === undefined ? whole : valueAt(whole, mapping.records);
  if (!Array.isArray(list)) {
    const place = mapping.records === undefined ? 'the file' : `${mapping.records} of the file`;
    throw new UsageError(`${place} is not a list of records`);
  }
  for (const [index, value] of list.entries()) {
    yield recordOf(mapping, index + 1, JSON.stringify(value), value);
  }
}

function parsedDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError('the file is not JSON; name a file with a JSON text in each line .ndjson');
  }
}

/** @throws UsageError for bytes that are not UTF-8: other letters would be stored in their place. */
async function* inUtf8(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const chunk of source) yield decoder.decode(chunk, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new UsageError('the file is not UTF-8; convert it first, for example with iconv');
  }
}

interface CsvOptions {
  readonly mapping: Mapping;
  readonly delimiter: string;
  readonly onHeader: (raw: string) => void;
}

interface CsvRow {
  readonly record: readonly string[];
  readonly raw: string;
  readonly info: { readonly lines: number };
}

async function* ofCsv(source: Readable, options: CsvOptions): AsyncGenerator<ImportRecord> {
  const { mapping, delimiter, onHeader } = options;
  let isUnclosed = false;
  const parser = parse({
    delimiter,
    bom: true,
    info: true,
    raw: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    // A quote within a field that does not begin with one is a character, as spreadsheets write it.
    relax_quotes: true,
    // The number of fields is checked below, with the number of the line.
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: recordBytesMax,
    skip_records_with_error: true,
    on_skip: () => {
      isUnclosed = true;
      return undefined;
    },
  });
  // Its errors reach the loop through the parser.
  pipeline(source, inUtf8, parser, () => undefined);
  let columns: readonly string[] | undefined;
  let lastLine = 0;
  for await (const { record, raw: rawLine, info } of parser as AsyncIterable<CsvRow>) {
    const raw = rawLine.replace(/^[\r\n]+|[\r\n]+$/g, '');
    const number = info.lines - (raw.match(/\r\n|\n|\r/g)?.length ?? 0);
    lastLine = info.lines;
    if (columns === undefined) {
      columns = columnsIn(record);
      requireColumns(mapping, columns);
      onHeader(raw);
    } else if (record.length !== columns.length) {
      yield {
        number,
        raw,
        problem: `has ${record.length} fields, and the first line ${columns.length}`,
      };
    } else {
      const fields = Object.fromEntries(columns.map((name, index) => [name, record[index] ?? '']));
      yield { number, raw, text: JSON.stringify(requestOf(mapping, fields)) };
    }
  }
  if (columns === undefined)
    throw new UsageError('the file is empty: its first line names the columns');
  if (isUnclosed) {
    const problem = 'begins a field with a quote that is never closed; nothing after it was read';
    yield { number: lastLine + 1, raw: '', problem };
  }
}

function columnsIn(record: readonly string[]): readonly string[] {
  const names = record.map((name) => name.trim());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return names;
  throw new UsageError(`the first line names the column ${twice} twice`);
}

const delimiters = [',', ';', '\t', '|'] as const;
const headerBytesMax = 65_536;

/** The one that the first line has most of. Of standard input it is not known, and a comma is most common. */
function delimiterOf(file: string): string {
  if (file === '-') return ',';
  const bytes = Buffer.alloc(headerBytesMax);
  const descriptor = openGivenFile(file);
  try {
    const text = bytes.toString('utf8', 0, readSync(descriptor, bytes));
    const [header = ''] = text.split(/\r\n|\n|\r/, 1);
    const counts = delimiters.map((one) => [one, header.split(one).length] as const);
    return counts.toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? ',';
  } finally {
    closeSync(descriptor);
  }
}
