/** `strongroom import`: tokens from a file of lines, as fast as the vault takes them. */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import type { ClientRequest } from 'node:http';
import type { Readable } from 'node:stream';
import { linesMediaType } from '../http/protocol/route.ts';
import { createFailedLines, type FailedLines, type LineResponse } from './failed-lines.ts';
import { countLines, textLines } from './file-lines.ts';
import { requestLine } from './import-lines.ts';
import {
  type Command,
  type Flags,
  printSummary,
  summaryFlag,
  UsageError,
} from './terminal/command.ts';
import { grouped, type Progress, startProgress } from './terminal/progress.ts';
import type { Terminal } from './terminal/terminal.ts';
import { clientFlags, createVaultClient, ResponseError } from './vault-client.ts';

/** Written at once, so that a line does not cost a system call. */
const writeCharacters = 65_536;

export const importCommand: Command = {
  summary:
    'Create a token for every line of a file: newline-delimited JSON, as POST /tokens takes it or as ' +
    'export writes it. Lines that fail are written to a file next to it, and so are the reasons.',
  operand: { name: 'FILE', meaning: 'the file, or - for standard input' },
  flags: {
    ...clientFlags,
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
  examples: ['cards.ndjson', 'cards.ndjson --from 1200001', '- --url https://vault.example.com'],
  run: async (flags, terminal) => {
    const file = flags['FILE'];
    if (typeof file !== 'string') throw new UsageError('the FILE is missing; - is standard input');
    const from = readFrom(flags);
    const client = createVaultClient(terminal, flags);
    const failed = createFailedLines(errorsFileOf(flags, file));
    const total = file === '-' ? undefined : (await countLines(file)) - from + 1;
    const progress = startProgress(terminal, 'lines', total);
    const source = file === '-' ? terminal.stdin : createReadStream(file);
    const { request, pendingResponse } = client.open('POST', '/tokens/bulk', linesMediaType);
    const waiting: SentLine[] = [];
    const over = new AbortController();
    let broken: unknown;
    send({ request, lines: linesFrom(source, from), waiting, over: over.signal }).catch((error) => {
      broken ??= error;
      request.destroy();
    });
    try {
      const counts = await readResponses({ pendingResponse, waiting, failed, progress });
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
      source.destroy();
      await failed.close();
    }
  },
};

interface SentLine {
  /** In the file, from 1. */
  readonly number: number;
  readonly text: string;
}

function readFrom({ from = '1' }: Flags): number {
  if (typeof from === 'string' && /^[1-9][0-9]{0,14}$/.test(from)) return Number(from);
  throw new UsageError('--from must be the number of a line, from 1');
}

function errorsFileOf({ errors }: Flags, file: string): string {
  if (typeof errors === 'string') return errors;
  return file === '-' ? 'import.errors' : `${file}.errors`;
}

async function* linesFrom(source: Readable, from: number): AsyncGenerator<SentLine> {
  let number = 0;
  for await (const line of textLines(source)) {
    number += 1;
    const text = number < from ? undefined : requestLine(line);
    if (text !== undefined) yield { number, text };
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
  readonly failed: FailedLines;
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

async function readResponses({
  pendingResponse,
  waiting,
  failed,
  progress,
}: Hearing): Promise<ImportCounts> {
  const counts: ImportCounts = {
    answered: 0,
    created: 0,
    repeated: 0,
    deduplicated: 0,
    last: 0,
    ended: undefined,
  };
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
      if (result.problem) await failed.add(line, result);
      else if (result.status === 200) counts.repeated += 1;
      else if (result.token?._extras?.deduplicated === true) counts.deduplicated += 1;
      else counts.created += 1;
      progress.report(counts.answered);
    }
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    counts.ended = `the connection was lost (${String(error.code)})`;
  }
  return counts;
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
