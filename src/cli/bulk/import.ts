/** `strongroom import`: tokens from a file, as fast as the vault takes them. */
import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { linesMediaType } from '../../http/protocol/route.ts';
import {
  type Command,
  type Flags,
  printSummary,
  summaryFlag,
  UsageError,
} from '../terminal/command.ts';
import { grouped, type Progress, startProgress } from '../terminal/progress.ts';
import { ResponseError } from '../terminal/response-error.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { dryRun } from './dry-run.ts';
import { createFailedLines, type FailedLines, type LineResponse } from './failed-lines.ts';
import { countLines, textLines } from './file-lines.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { readMapping } from './mapping.ts';
import { type ImportPlan, type ImportRunTools, isNewEachTime } from './plan.ts';
import { preview } from './preview.ts';
import { type ImportRecord, openRecords } from './records.ts';
import { clientFlags, createVaultClient, type VaultClient } from './vault-client.ts';

/** Written at once, so that a line does not cost a system call. */
const writeCharacters = 65_536;

/** Lines that failed are shown up to this number; the file of the reasons has all of them. */
const shownMax = 10;

export const importCommand: Command = {
  summary:
    'Create a token for every line of a file: newline-delimited JSON, as POST /tokens takes it or as ' +
    'export writes it, or with --mapping the CSV or JSON of another vault. Lines that fail are written to a file ' +
    'next to it, and so are the reasons.',
  operand: { name: 'FILE', meaning: 'the file, or - for standard input' },
  flags: {
    ...clientFlags,
    mapping: {
      kind: 'string',
      value: 'MAPPING',
      meaning: 'JSON file that says which columns become which attributes',
    },
    preview: {
      kind: 'boolean',
      meaning: 'show the first tokens without their values, and send nothing',
    },
    'dry-run': {
      kind: 'boolean',
      meaning: 'say what would be created, refused and doubled, and create nothing',
    },
    'management-key-file': {
      kind: 'string',
      value: 'FILE',
      meaning:
        'with --dry-run: file with a management key, which reads the quotas and what is stored',
    },
    resume: { kind: 'boolean', meaning: 'leave out the lines that were imported before' },
    again: {
      kind: 'boolean',
      meaning: 'import lines without an id even if they were imported before',
    },
    from: {
      kind: 'string',
      value: 'LINE',
      meaning: 'number of the line to begin with (default: 1)',
    },
    errors: {
      kind: 'string',
      value: 'FILE',
      meaning: 'file for lines that fail (default: FILE.errors)',
    },
    json: summaryFlag,
  },
  examples: [
    'cards.ndjson',
    'cards.csv --mapping mapping.json --preview',
    'cards.csv --mapping mapping.json --dry-run',
    'cards.ndjson --resume',
    '- --url https://vault.example.com',
  ],
  run: async (flags, terminal) => {
    const file = flags['FILE'];
    if (typeof file !== 'string') throw new UsageError('the FILE is missing; - is standard input');
    const mapping =
      typeof flags['mapping'] === 'string' ? readMapping(flags['mapping']) : undefined;
    if (mapping === undefined && /\.csv$/i.test(file)) {
      throw new UsageError('a CSV file needs a --mapping, which says what its columns are');
    }
    const plan = { file, mapping, stdin: terminal.stdin, from: readFrom(flags) };
    if (flags['preview'] === true) return preview(plan, terminal);
    const client = createVaultClient(terminal, flags);
    const ledger = file === '-' ? undefined : openLedgerOf(file, client);
    try {
      if (flags['dry-run'] === true) return await dryRun(plan, { client, ledger, flags, terminal });
      if (!(await mayImport(plan, { ledger, flags, terminal }))) return 1;
      return await importFile(plan, { client, ledger, flags, terminal });
    } finally {
      ledger?.close();
    }
  },
};

interface SentLine extends ImportRecord {
  readonly text: string;
  /** Whether sending it again would make a second token. */
  readonly isNewEachTime: boolean;
}

function openLedgerOf(file: string, { url, key }: VaultClient): Ledger {
  const { origin } = new URL(url);
  return openLedger({ file: `${file}.imported`, key, url: origin, now: new Date() });
}

function readFrom({ from = '1' }: Flags): number {
  if (typeof from === 'string' && /^[1-9][0-9]{0,14}$/.test(from)) return Number(from);
  throw new UsageError('--from must be the number of a line, from 1');
}

function errorsFileOf({ errors }: Flags, file: string): string {
  if (typeof errors === 'string') return errors;
  return file === '-' ? 'import.errors' : `${file}.errors`;
}

/** False, with the reason on standard error, where lines without an id would be imported a second time. */
async function mayImport(
  plan: ImportPlan,
  { ledger, flags, terminal }: Omit<ImportRunTools, 'client'>,
): Promise<boolean> {
  if (ledger === undefined) return true;
  const { importedAt, otherImportAt } = ledger;
  if (otherImportAt !== undefined) {
    terminal.stderr.write(
      `${plan.file} was imported to this address with another key, on ${otherImportAt}. Lines without an id become ` +
        'second tokens if it was the same tenant.\n',
    );
  }
  if (importedAt === undefined || flags['again'] === true || flags['resume'] === true) return true;
  const opened = openRecords(plan);
  let [lines, before] = [0, 0];
  try {
    for await (const { number, raw, text } of opened.records) {
      if (text === undefined || !isNewEachTime(text)) continue;
      const wasImported = ledger.wasImported(raw);
      if (number < plan.from) continue;
      lines += 1;
      if (wasImported) before += 1;
    }
  } finally {
    opened.close();
    ledger.rewind();
  }
  if (before === 0) return true;
  terminal.stderr.write(
    `${grouped(before)} of ${grouped(lines)} lines without an id were imported before, on ${importedAt}. Nothing was ` +
      'imported now. Use --resume to leave these lines out, or --again to create second tokens for them.\n',
  );
  return false;
}

async function importFile(
  plan: ImportPlan,
  { client, ledger, flags, terminal }: ImportRunTools,
): Promise<number> {
  const { file, from } = plan;
  const opened = openRecords(plan);
  const failed = createFailedLines(errorsFileOf(flags, file), opened.header);
  const total = file === '-' ? undefined : (await countLines(file)) - from + 1;
  const progress = startProgress(terminal, 'lines', total);
  const { request, pendingResponse } = client.open('POST', '/tokens/bulk', linesMediaType);
  const waiting: SentLine[] = [];
  const over = new AbortController();
  const counts = newCounts();
  let broken: unknown;
  const lines = linesToSend(opened.records, {
    from,
    onBroken: (record) =>
      fail(failed, terminal, record, { problem: { detail: record.problem ?? 'cannot be read' } }),
    isLeftOut: (record) => {
      const wasImported = ledger?.wasImported(record.raw) === true && flags['resume'] === true;
      if (wasImported && record.number >= from) counts.repeated += 1;
      return wasImported;
    },
  });
  send({ request, lines, waiting, over: over.signal }).catch((error) => {
    broken ??= error;
    request.destroy();
  });
  try {
    const onFailed = (line: SentLine, result: LineResponse) => fail(failed, terminal, line, result);
    const onCreated = ({ isNewEachTime: isNew, raw }: SentLine) => isNew && ledger?.add(raw);
    await readResponses({ pendingResponse, waiting, counts, onFailed, onCreated, progress });
    progress.finish();
    const code = report(terminal, counts, { waiting, failed, from });
    const { created, deduplicated, repeated } = counts;
    printSummary(terminal, flags, { created, deduplicated, repeated, failed: failed.count });
    if (broken) throw broken;
    return code;
  } catch (error) {
    throw broken ?? error;
  } finally {
    over.abort();
    request.destroy();
    opened.close();
    await failed.close();
  }
}

async function fail(
  failed: FailedLines,
  { stderr }: Terminal,
  line: Pick<ImportRecord, 'number' | 'raw'>,
  result: LineResponse,
): Promise<void> {
  await failed.add(line, result);
  if (failed.count <= shownMax) stderr.write(`line ${line.number} ${reasonIn(result)}\n`);
}

/** Without values, as problems are. */
function reasonIn({ status, problem = {} }: LineResponse): string {
  const errors = Object.entries(problem.errors ?? {});
  const reasons = errors.map(([name, messages]) => `${name} ${[messages].flat().join(', ')}`);
  const reason = reasons.join('; ') || (problem.detail ?? 'was refused');
  return status === undefined ? reason : `(${status}): ${reason}`;
}

interface Sorting {
  readonly from: number;
  readonly onBroken: (record: ImportRecord) => Promise<void>;
  /** Called for every line that would be a new token, also before the first that is sent. */
  readonly isLeftOut: (record: ImportRecord) => boolean;
}

async function* linesToSend(
  records: AsyncIterable<ImportRecord>,
  { from, onBroken, isLeftOut }: Sorting,
): AsyncGenerator<SentLine> {
  for await (const record of records) {
    const { number, text } = record;
    if (text === undefined) {
      if (number >= from) await onBroken(record);
      continue;
    }
    const isNew = isNewEachTime(text);
    const leftOut = isNew && isLeftOut(record);
    if (number >= from && !leftOut) yield { ...record, text, isNewEachTime: isNew };
  }
}

interface ImportExchange {
  readonly request: ClientRequest;
  readonly lines: AsyncIterable<SentLine>;
  /** Lines without a response, in their order: no more than are on their way. */
  readonly waiting: SentLine[];
  readonly over: AbortSignal;
}

async function send({ request, lines, waiting, over }: ImportExchange): Promise<void> {
  let text = '';
  for await (const line of lines) {
    waiting.push(line);
    text += `${line.text}\n`;
    if (text.length < writeCharacters) continue;
    if (!request.write(text)) await once(request, 'drain', { signal: over });
    text = '';
    if (over.aborted) return;
  }
  request.end(text);
}

interface Hearing {
  readonly pendingResponse: Promise<AsyncIterable<Buffer>>;
  readonly waiting: SentLine[];
  readonly counts: ImportCounts;
  readonly onFailed: (line: SentLine, result: LineResponse) => Promise<void>;
  readonly onCreated: (line: SentLine) => void;
  readonly progress: Progress;
}

interface ImportCounts {
  answered: number;
  created: number;
  repeated: number;
  deduplicated: number;
  /** The number of the last line with a response. */
  last: number;
  /** Why the vault did not respond to all lines. */
  ended: string | undefined;
}

function newCounts(): ImportCounts {
  return { answered: 0, created: 0, repeated: 0, deduplicated: 0, last: 0, ended: undefined };
}

async function readResponses(hearing: Hearing): Promise<void> {
  const { pendingResponse, waiting, counts, onFailed, onCreated, progress } = hearing;
  const response = await pendingResponse;
  try {
    for await (const text of textLines(response)) {
      const result = JSON.parse(text) as LineResponse;
      if (result.line === undefined) {
        counts.ended = result.problem?.detail ?? 'it gave no reason';
        break;
      }
      const line = waiting.shift();
      if (line === undefined)
        throw new ResponseError('the vault sent a result for a line that was not sent');
      counts.answered += 1;
      counts.last = line.number;
      if (result.problem) await onFailed(line, result);
      else if (result.status === 200) counts.repeated += 1;
      else if (result.token?._extras?.deduplicated === true) counts.deduplicated += 1;
      else {
        counts.created += 1;
        onCreated(line);
      }
      progress.report(counts.answered);
    }
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    counts.ended = `the connection was lost (${String(error.code)})`;
  }
}

interface ReportOptions {
  readonly waiting: readonly SentLine[];
  readonly failed: FailedLines;
  readonly from: number;
}

function report(
  { stderr }: Terminal,
  counts: ImportCounts,
  { waiting, failed, from }: ReportOptions,
): number {
  const { created, repeated, deduplicated, ended, last } = counts;
  const say = (text: string) => stderr.write(`${text}\n`);
  say(
    `${grouped(created)} tokens created, ${grouped(deduplicated)} values deduplicated, ` +
      `${grouped(repeated)} lines already imported, ${grouped(failed.count)} failed.`,
  );
  if (failed.count > 0) say(`The lines that failed: ${failed.file}; why: ${failed.reasonsFile}`);
  const unanswered = ended !== undefined || waiting.length > 0;
  if (unanswered) {
    say(`The import ended early: ${ended ?? 'the response was cut off'}`);
    say(
      `Continue with --from ${Math.max(from, last + 1)}; lines with an id are never imported twice.`,
    );
  }
  return unanswered || failed.count > 0 ? 1 : 0;
}
