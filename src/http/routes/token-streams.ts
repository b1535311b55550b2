/** Routes for large numbers of tokens: lines in, lines out, none held longer than needed. */
import { exportTokens } from '../../vault/tokens/export.ts';
import { type ImportTools, importStream } from '../bulk/import-stream.ts';
import { linesMediaType, type Route, stream } from '../protocol/route.ts';
import { tokenRequest } from '../schemas/token.ts';
import { createdLine, exportedLine, exportQuery } from '../schemas/token-stream.ts';
import { filterOf } from './token-lists.ts';

export function tokenStreamRoutes(tools: ImportTools): Route[] {
  return [
    stream({
      method: 'POST',
      path: '/tokens/bulk',
      summary: 'Create a token for every line',
      permission: 'token:create',
      body: tokenRequest,
      mediaType: linesMediaType,
      reply: { status: 200, body: createdLine, mediaType: linesMediaType },
      stream: (request) => importStream(tools, request),
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
