/** The import: any number of create requests, sent in parts that are small enough to be sent again. */
import { conceal } from './conceal.ts';
import { type Connection, pause, randomId } from './connection.ts';
import { ApiError, ConnectionError, StreamError, StrongroomError } from './errors.ts';
import type { ExportOptions, Progress } from './export.ts';
import { linesOf, parseLine } from './lines.ts';
import { waitMs } from './retries.ts';
import type { CreatedLine, Problem, Token, TokenRequest } from './wire.ts';

/**
 * The result of one request of an import: the token, or the problem.
 *
 * @example
 * ```ts
 * import type { ImportResult } from '@strongroom/client';
 *
 * const failed: ImportResult[] = [];
 * for await (const result of vault.tokens.import([{ type: 'token', data: 'Ada Lovelace' }])) {
 *   if (result.problem) failed.push(result);
 * }
 * ```
 */
export interface ImportResult {
  /** The number of the request, from 1. */
  readonly line: number;
  /** The HTTP status that this request alone would have had. */
  readonly status: number;
  /** The token, where there is one. */
  readonly token?: Token;
  /** Why it failed, otherwise. */
  readonly problem?: Problem;
}

/**
 * Options of an import.
 *
 * @example
 * ```ts
 * import type { ImportOptions } from '@strongroom/client';
 *
 * const options: ImportOptions = { requestsAtOnce: 100, onProgress: ({ done }) => console.log(done) };
 * for await (const { status } of vault.tokens.import([], options)) console.log(status);
 * ```
 */
export interface ImportOptions extends Omit<ExportOptions, 'idempotencyKey'> {
  /** How many requests are sent before their results are read: 500 unless given, and fewer where they are large. */
  readonly requestsAtOnce?: number | undefined;
  /** Called after each part, before its results are given. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

const requestsAtOnceDefault = 500;
const charactersMax = 512 * 1024;

interface Line {
  readonly text: string;
  /** Its id, where this client chose it. */
  readonly ownId: string | undefined;
}

/** @throws StreamError where a part cannot be sent to its end; `done` says how many requests have a result. */
export async function* importTokens(
  connection: Connection,
  requests: AsyncIterable<TokenRequest> | Iterable<TokenRequest>,
  options: ImportOptions = {},
): AsyncGenerator<ImportResult, void, undefined> {
  let done = 0;
  let failed = 0;
  let bytes = 0;
  for await (const part of partsOf(requests, options.requestsAtOnce ?? requestsAtOnceDefault)) {
    const results: ImportResult[] = [];
    let failure: unknown;
    try {
      await sendPart(connection, part, results, options);
    } catch (error) {
      failure = error;
    }
    for (const { problem } of results) if (problem) failed += 1;
    for (const { text } of part.slice(0, results.length)) bytes += text.length + 1;
    const before = done;
    done += results.length;
    options.onProgress?.({ done, failed, bytes });
    for (const result of results) yield { ...result, line: before + result.line };
    if (failure !== undefined) throw asStreamError(failure, done);
  }
}

/** Adds the results of the lines in their order, also where it fails then. */
async function sendPart(
  connection: Connection,
  part: readonly Line[],
  results: ImportResult[],
  options: ImportOptions,
): Promise<void> {
  const retries = connection.retriesOf(options);
  for (let attempt = 1; ; attempt++) {
    const before = results.length;
    const body = part.slice(before).map(({ text }) => `${text}\n`);
    // The type of the body is that of one line.
    const input = { body: undefined as unknown as TokenRequest };
    const outgoing = connection.prepare('createTokens', input, {}, body.join(''));
    try {
      for await (const text of linesOf(await connection.open(outgoing, options))) {
        const line = parseLine(text) as CreatedLine | undefined;
        if (line?.line === undefined) throw ended(line?.problem);
        results.push(resultOf(line, results.length + 1, part[results.length], attempt > 1));
      }
      if (results.length < part.length) throw ended(undefined);
      return;
    } catch (error) {
      options.signal?.throwIfAborted();
      if (results.length > before) attempt = 1;
      const known = error instanceof StrongroomError ? error : ended(undefined);
      // The connection itself was tried again while there was no response.
      const wait = known instanceof StreamError ? waitFor(known, attempt) : undefined;
      if (wait === undefined || attempt > retries) throw known;
      await pause(wait, options.signal);
    }
  }
}

function resultOf(
  { status = 0, token, problem }: CreatedLine,
  line: number,
  sent: Line | undefined,
  isRepeated: boolean,
): ImportResult {
  // Its id is random, so the attempt before created it. This key may not see that it is equal.
  if (isRepeated && status === 409 && sent?.ownId !== undefined) {
    return { line, status: 200, token: { id: sent.ownId } };
  }
  conceal(token);
  return { line, status, ...(token && { token }), ...(problem && { problem }) };
}

/** A part that ended before its last line has its result. */
function ended(problem: Problem | undefined): StreamError {
  return new StreamError(problem?.detail ?? 'The connection was lost.', 0, problem);
}

/** What the vault refuses for good, such as a key that was revoked, is not sent again. */
function waitFor({ problem }: StreamError, attempt: number): number | undefined {
  const error = problem
    ? new ApiError({ problem, traceId: undefined, retryAfter: undefined })
    : new ConnectionError('');
  return waitMs(error, attempt);
}

function asStreamError(error: unknown, done: number): unknown {
  if (!(error instanceof StreamError) && !(error instanceof ConnectionError)) return error;
  const problem = error instanceof StreamError ? error.problem : undefined;
  return new StreamError(
    `The import broke off after ${done} requests: ${error.message} Go on with request ${done + 1}. ` +
      'Requests that you give an id are never imported twice.',
    done,
    problem,
  );
}

async function* partsOf(
  requests: AsyncIterable<TokenRequest> | Iterable<TokenRequest>,
  requestsMax: number,
): AsyncGenerator<Line[], void, undefined> {
  let part: Line[] = [];
  let characters = 0;
  for await (const request of requests) {
    const ownId = request.id == null ? randomId() : undefined;
    const text = JSON.stringify(ownId === undefined ? request : { ...request, id: ownId });
    if (
      part.length > 0 &&
      (part.length >= requestsMax || characters + text.length > charactersMax)
    ) {
      yield part;
      part = [];
      characters = 0;
    }
    part.push({ text, ownId });
    characters += text.length;
  }
  if (part.length > 0) yield part;
}
