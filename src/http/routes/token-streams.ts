/** Routes for large numbers of tokens: lines in, lines out, none held longer than needed. */
import { errorKinds, VaultError } from '../../lib/errors.ts';
import type { TokenWriting } from '../../vault/tokens/create.ts';
import { exportTokens } from '../../vault/tokens/export.ts';
import { createImport, type ImportLine, type ImportResult } from '../../vault/tokens/import.ts';
import { bodyBytesMax, parseJson } from '../protocol/body.ts';
import { type BodyLine, linesOf } from '../protocol/lines.ts';
import { problemOf } from '../protocol/problem.ts';
import { linesMediaType, type Route, type StreamRequest, stream } from '../protocol/route.ts';
import { readTokenRequest } from '../protocol/token-request.ts';
import { tokenRequest } from '../schemas/token.ts';
import { createdLine, exportedLine, exportQuery } from '../schemas/token-stream.ts';
import { filterOf } from './token-lists.ts';

export function tokenStreamRoutes(tools: TokenWriting): Route[] {
  return [
    stream({
      method: 'POST',
      path: '/tokens/bulk',
      summary: 'Create a token for every line',
      permission: 'token:create',
      body: tokenRequest,
      mediaType: linesMediaType,
      reply: { status: 200, body: createdLine, mediaType: linesMediaType },
      stream: (request) => createdLines(tools, request),
    }),
    stream({
      method: 'GET',
      path: '/tokens/export',
      summary: 'Read every token, newest first',
      permission: 'token:read',
      query: exportQuery,
      reply: { status: 200, body: exportedLine, mediaType: linesMediaType },
      stream: ({ caller, query }) =>
        exportedLines(exportTokens(tools, { caller, filter: filterOf(query) })),
    }),
  ];
}

/** Some lines that are being worked on; an object, because a generator would wait for a promise. */
interface LineWork {
  readonly answer: Promise<readonly object[]>;
}

async function* workOn(
  tools: TokenWriting,
  { caller, count, body }: StreamRequest<object>,
): AsyncGenerator<LineWork> {
  const createAll = createImport(tools);
  let number = 0;
  for await (const lines of linesOf(body, bodyBytesMax)) {
    const first = number + 1;
    number += lines.length;
    const numbered = lines
      .map((line, at) => ({ number: first + at, line }))
      .filter(({ line }) => !isBlank(line));
    if (numbered.length === 0) continue;
    const known = await caller();
    const { granted, refusal } = await count(numbered.length);
    const requests = numbered.map(({ line }, at) =>
      refusal && at >= granted ? refusal : readLine(line),
    );
    // Lines that are only over the limit cost neither a decision nor a commit.
    const results = granted === 0 ? allRefused(requests) : createAll(known, requests);
    yield {
      answer: results.then((all) =>
        all.map((result, at) => answerOf(numbered[at]?.number, result)),
      ),
    };
  }
}

async function allRefused(requests: readonly ImportLine[]): Promise<readonly ImportResult[]> {
  return requests.flatMap((failure) => (failure instanceof VaultError ? [{ failure }] : []));
}

/** While some lines become durable the next ones are decided, and no more than those. */
async function* createdLines(
  tools: TokenWriting,
  request: StreamRequest<object>,
): AsyncGenerator<readonly object[]> {
  const work = workOn(tools, request);
  let next = work.next();
  try {
    for (let some = await next; some.done !== true; some = await next) {
      next = work.next();
      // A failure is reported in the order of the lines.
      answerOfNext(next).catch(nothing);
      yield await some.value.answer;
    }
  } finally {
    await answerOfNext(next).catch(nothing);
    await work.return(undefined);
  }
}

async function answerOfNext(next: Promise<IteratorResult<LineWork>>): Promise<void> {
  await (await next).value?.answer;
}

function nothing(): void {}

const visible = /\S/;

/** Counted, but not processed, and without a line in the response. */
function isBlank(line: BodyLine): boolean {
  return line !== undefined && line[0] !== 0x7b && !visible.test(line.toString('latin1'));
}

function readLine(line: BodyLine): ImportLine {
  try {
    if (line === undefined) {
      throw new VaultError('body_too_large', {
        public: `The line has more than ${bodyBytesMax} bytes.`,
      });
    }
    return readTokenRequest(parseJson(line, 'line'));
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
}

function answerOf(line: number | undefined, result: ImportResult): object {
  if ('token' in result) return { line, status: result.repeated ? 200 : 201, token: result.token };
  const { failure } = result;
  return { line, status: errorKinds[failure.code].status, problem: problemOf(failure) };
}

/** The last line says that it is the last: an export without one was cut off. */
async function* exportedLines(
  batches: AsyncIterable<readonly object[]>,
): AsyncGenerator<readonly object[]> {
  let exported = 0;
  for await (const batch of batches) {
    exported += batch.length;
    yield batch;
  }
  yield [{ exported }];
}
