/** The lines of an import that a sibling thread decides, commits, and returns as the bytes of a response. */
import type { Authenticate } from '../../access/authenticate.ts';
import { createPause } from '../../base/pauses.ts';
import type { TokenWriting } from '../../tokens/create.ts';
import { type ImportLine, importLines } from '../../tokens/import.ts';
import { linesIn } from '../protocol/lines.ts';
import { bytesOfResponses, type LineFormat, numbered, readLine, responseOf } from './part.ts';
import type { ImportShared } from './siblings.ts';

export interface ImportSharedTools extends TokenWriting, LineFormat {
  readonly authenticate: Authenticate;
}

/** Rejects with `unauthenticated` where the caller has ended since the other thread saw it. */
export function createImportShared(tools: ImportSharedTools): ImportShared {
  return async ({ run, key, origin, first, bytes }, askTurn) => {
    const caller = await tools.authenticate(key, origin);
    const own = { ...run };
    const parts = numbered(linesIn(Buffer.from(bytes.buffer)), first);
    const pause = createPause();
    const lines: ImportLine[] = [];
    for (const part of parts) {
      await pause();
      lines.push(readLine(tools, part, caller));
    }
    const turn = async () => {
      await askTurn();
      return tools.authenticate(key, origin);
    };
    const results = await importLines(tools, own, { caller, lines, turn });
    const responses = results.map((result, at) => responseOf(parts[at]?.number, result));
    return { bytes: await bytesOfResponses(tools, responses), idsAreTaken: own.idsAreTaken };
  };
}
