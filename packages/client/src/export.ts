/** The export: one response with a line for each token, and a last line that says that it is whole. */
import { conceal } from './conceal.ts';
import type { Connection, RequestOptions } from './connection.ts';
import { StreamError } from './errors.ts';
import { linesOf, parseLine } from './lines.ts';
import type { ExportedLine, ExportTokensQuery, Token } from './wire.ts';

/**
 * How far an import or an export has come.
 *
 * @example
 * ```ts
 * import type { Progress } from '@strongroom/client';
 *
 * const onProgress = ({ done, failed, bytes }: Progress) => console.log(done, failed, bytes);
 * for await (const token of vault.tokens.export({}, { onProgress })) console.log(token.id);
 * ```
 */
export interface Progress {
  /** Tokens that were received, or requests that have a result. */
  readonly done: number;
  /** Requests of an import whose result is a problem. */
  readonly failed: number;
  /** Bytes received of an export, characters sent of an import. */
  readonly bytes: number;
}

/**
 * Options of an export. Its `timeout` is for the beginning of the response, and again for each of its parts.
 *
 * @example
 * ```ts
 * import type { ExportOptions } from '@strongroom/client';
 *
 * const options: ExportOptions = { onProgress: ({ done }) => console.log(done) };
 * for await (const token of vault.tokens.export({}, options)) console.log(token.id);
 * ```
 */
export interface ExportOptions extends RequestOptions {
  /** Called after each part of the response. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** @throws StreamError where the last line is not the number of all before it. */
export async function* exportTokens<Data>(
  connection: Connection,
  query: ExportTokensQuery,
  options: ExportOptions = {},
): AsyncGenerator<Token<Data>, void, undefined> {
  let done = 0;
  let bytes = 0;
  const broken = (why: string, problem?: ExportedLine['problem']) =>
    new StreamError(
      `The export broke off after ${done} tokens: ${why} What came is right, but not all. Export again.`,
      done,
      problem,
    );
  const outgoing = connection.prepare('exportTokens', { query });
  const chunks = await connection.open(outgoing, options);
  const report = () => options.onProgress?.({ done, failed: 0, bytes });
  async function* counted() {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      yield chunk;
      report();
    }
  }
  try {
    for await (const text of linesOf(counted())) {
      const line = parseLine(text) as ExportedLine | undefined;
      if (line?.problem) throw broken(line.problem.detail, line.problem);
      if (line?.exported === done) {
        report();
        return;
      }
      if (line?.id === undefined) throw broken('the vault sent a line that is no token.');
      done += 1;
      yield conceal(line) as Token<Data>;
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof StreamError) throw error;
    throw broken('the connection was lost.');
  }
  throw broken('the connection ended.');
}
