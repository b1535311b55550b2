/** Some lines of an import, on any thread: what each line requests, and its response. */
import { errorKinds, VaultError } from '../../base/errors.ts';
import { createPause } from '../../base/pauses.ts';
import type { Caller } from '../../rules/caller.ts';
import { membersMaxOf } from '../../rules/members.ts';
import type { TokenRequest } from '../../tokens/contents/contents.ts';
import type { ImportLine, ImportResult } from '../../tokens/import.ts';
import { bodyBytesMax, parseJson } from '../protocol/body.ts';
import type { BodyLine } from '../protocol/lines.ts';
import { problemOf } from '../protocol/problem.ts';
import type { Serialize } from '../protocol/serialization.ts';

/** How the lines of an import are read and written. */
export interface LineFormat {
  readonly readRequest: (json: unknown) => TokenRequest;
  readonly serializeLine: Serialize;
}

export interface NumberedLine {
  readonly number: number;
  readonly line: BodyLine;
}

const visible = /\S/;

/** Blank lines are counted, but not processed, and have no line in the response. */
export function numbered(lines: readonly BodyLine[], first: number): readonly NumberedLine[] {
  return lines
    .map((line, at) => ({ number: first + at, line }))
    .filter(({ line }) => !isBlank(line));
}

function isBlank(line: BodyLine): boolean {
  return line !== undefined && line[0] !== 0x7b && !visible.test(line.toString('latin1'));
}

/** @param caller whose key decides how many members a line may have. */
export function readLine(
  { readRequest }: LineFormat,
  { line }: NumberedLine,
  caller: Caller,
): ImportLine {
  try {
    if (line === undefined) {
      throw new VaultError('body_too_large', {
        public: `The line has more than ${bodyBytesMax} bytes.`,
      });
    }
    return readRequest(parseJson(line, { noun: 'line', membersMax: membersMaxOf(caller) }));
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
}

/** A line of the response. */
export function responseOf(line: number | undefined, result: ImportResult): object {
  if ('token' in result) return { line, status: result.repeated ? 200 : 201, token: result.token };
  const { failure } = result;
  return { line, status: errorKinds[failure.code].status, problem: problemOf(failure) };
}

const utf8 = new TextEncoder();

/** Lines of the response as they are sent, in memory of their own. */
export async function bytesOfResponses(
  { serializeLine }: LineFormat,
  responses: readonly object[],
): Promise<Uint8Array> {
  const pause = createPause();
  let text = '';
  for (const response of responses) {
    await pause();
    text += `${serializeLine(response)}\n`;
  }
  return utf8.encode(text);
}
