/** The lines of an import that another thread has begun: decided and committed here, and answered as bytes. */
import type { Authenticate } from '../../gate/authenticate.ts';
import { createPause } from '../../lib/pauses.ts';
import type { TokenWriting } from '../../vault/tokens/create.ts';
import { type ImportLine, importLines } from '../../vault/tokens/import.ts';
import { linesIn } from '../protocol/lines.ts';
import { compileSerializer } from '../protocol/serialization.ts';
import { createdLine } from '../schemas/token-stream.ts';
import { answerOf, numbered, readLine } from './part.ts';
import type { ImportShared } from './siblings.ts';

export interface ImportSharedTools extends TokenWriting {
  readonly authenticate: Authenticate;
}

const utf8 = new TextEncoder();

/** Rejects with `unauthenticated` where the caller has ended since the other thread saw it. */
export function createImportShared(tools: ImportSharedTools): ImportShared {
  const serialize = compileSerializer(createdLine);
  return async ({ run, key, origin, first, bytes }, askTurn) => {
    const caller = await tools.authenticate(key, origin);
    const own = { ...run };
    const parts = numbered(linesIn(Buffer.from(bytes.buffer)), first);
    const pause = createPause();
    const lines: ImportLine[] = [];
    for (const part of parts) {
      await pause();
      lines.push(readLine(part));
    }
    let asked: Promise<void> | undefined;
    const turn = () => (asked ??= askTurn());
    const results = await importLines(tools, own, { caller, lines, turn });
    let text = '';
    for (const [at, result] of results.entries()) {
      await pause();
      text += `${serialize(answerOf(parts[at]?.number, result))}\n`;
    }
    return { bytes: utf8.encode(text), idsAreTaken: own.idsAreTaken };
  };
}
