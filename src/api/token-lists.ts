/** Finding many tokens: lists and searches, the first version by page, the second by cursor, and the export. */
import Type, { type Static } from 'typebox';
import { containerForm, parseContainer } from '../base/container.ts';
import { invalid } from '../base/errors.ts';
import { parseTokenId } from '../base/ids.ts';
import { createKeyedMutex } from '../base/keyed-mutex.ts';
import { linesMediaType } from '../http/protocol/route.ts';
import { type TokenTypeName, tokenTypes } from '../tokens/contents/token-types.ts';
import { exportTokens } from '../tokens/export.ts';
import { listByCursor, listByPage } from '../tokens/list.ts';
import type { TokenReading } from '../tokens/read.ts';
import type { KeyFollowing } from '../tokens/search/current-keys.ts';
import type { TokenFilter } from '../tokens/search/filter.ts';
import { parseSearch, queryLengthMax } from '../tokens/search/search-query.ts';
import { type Operation, operation, streamOperation } from './declaration/operation.ts';
import { attribute, object } from './declaration/shape.ts';
import { metadataOf, metadataPatterns, metadataProperties } from './metadata-query.ts';
import {
  cursor,
  cursorPage,
  filters,
  nullable,
  offsetPage,
  pageBody,
  pageQuery,
  problem,
  strict,
  text,
} from './shapes.ts';
import { container, token } from './token-shapes.ts';

const ids = {
  id: attribute(Type.Optional(Type.Array(text, { maxItems: 1000 })), filters.ids),
};

const tokensQuery = object(
  { ...ids, ...pageQuery, ...metadataProperties },
  { ...strict, ...metadataPatterns },
);

const tokenFilters = {
  container: attribute(Type.Optional(container), 'Only in this container and those below it.'),
  type: attribute(Type.Optional(Type.Enum(Object.keys(tokenTypes))), 'Only of this type.'),
  fingerprint: attribute(
    Type.Optional(Type.String({ pattern: '^[A-Za-z0-9]{1,100}$' })),
    'Only with this fingerprint.',
  ),
};

const tokensCursorQuery = object(
  { ...ids, ...tokenFilters, ...pageQuery, ...metadataProperties },
  { ...strict, ...metadataPatterns },
);

const exportQuery = object(
  { ...tokenFilters, ...metadataProperties },
  { ...strict, ...metadataPatterns },
);

const query = attribute(
  nullable(Type.String({ maxLength: queryLengthMax })),
  'Terms joined by ` AND `, such as `data:<value>` or `metadata.<key>:<value>`; everything unless given.',
);

const tokenSearch = object({ query, ...pageBody }, { ...strict, title: 'TokenPageSearch' });

const tokenCursorSearch = object(
  { query, size: pageBody.size, start: attribute(pageBody.start, cursor) },
  { ...strict, title: 'TokenSearch' },
);

const exportedLine = object(
  {
    ...token.properties,
    id: Type.Optional(token.properties.id),
    exported: attribute(
      Type.Optional(Type.Integer()),
      'How many tokens were exported. Only the last line has it.',
    ),
    problem: attribute(Type.Optional(problem), 'Why it failed.'),
  },
  {
    title: 'ExportedLine',
    description:
      'A token. Only the last line is different: the number of tokens exported, or the problem that ' +
      'ended the export early.',
  },
);

const id = 'order-4711-card';

/** Lists and searches, with the version that clients should use before the one with numbered pages. */
export function tokenLists(reading: TokenReading & KeyFollowing): Operation[] {
  const tools = { ...reading, inTurn: createKeyedMutex() };
  return [
    operation({
      id: 'listTokens',
      method: 'GET',
      path: '/v2/tokens',
      summary: 'List tokens by cursor, newest first',
      description: 'Follow `pagination.next` until it is absent.',
      permission: 'token:read',
      query: tokensCursorQuery,
      reply: { status: 200, body: cursorPage(token) },
      example: {
        query: { container: '/pci/', type: 'card', size: '10' },
        reply: { pagination: { page_size: 10 }, data: [{ id, type: 'card' }] },
      },
      handle: ({ caller, query }) =>
        listByCursor(tools, caller, {
          permission: 'token:read',
          route: 'GET /v2/tokens',
          filter: { ...idsOf(query), ...filterOf(query) },
          ...placeOf(query),
        }),
    }),
    operation({
      id: 'listTokensByPage',
      method: 'GET',
      path: '/tokens',
      summary: 'List tokens by page, newest first',
      description: 'The first version of the list, with exact totals.',
      permission: 'token:read',
      query: tokensQuery,
      reply: { status: 200, body: offsetPage(token) },
      example: {
        query: { id, page: '1', size: '10' },
        reply: {
          pagination: { total_items: 1, page_number: 1, page_size: 10, total_pages: 1 },
          data: [{ id, type: 'card' }],
        },
      },
      handle: ({ caller, query }) =>
        listByPage(tools, caller, {
          permission: 'token:read',
          route: 'GET /tokens',
          filter: {
            ...idsOf(query),
            metadata: metadataOf(query),
            metadataCase: 'folded',
          },
          ...placeOf(query),
        }),
    }),
    operation({
      id: 'searchTokens',
      method: 'POST',
      path: '/v2/tokens/search',
      summary: 'Search tokens by cursor, newest first',
      description:
        'The query has terms such as `data:<value>` of a search index, or `metadata.<key>:<value>`, joined by ` AND `.',
      permission: 'token:search',
      body: tokenCursorSearch,
      reply: { status: 200, body: cursorPage(token) },
      example: {
        body: { query: 'data:4242', size: 10 },
        reply: { pagination: { page_size: 10 }, data: [{ id, type: 'card' }] },
      },
      handle: ({ caller, body }) =>
        listByCursor(tools, caller, {
          permission: 'token:search',
          route: 'POST /v2/tokens/search',
          filter: { ...parseSearch(body.query ?? ''), metadataCase: 'exact' },
          ...placeOf(body),
        }),
    }),
    operation({
      id: 'searchTokensByPage',
      method: 'POST',
      path: '/tokens/search',
      summary: 'Search tokens by page, newest first',
      description:
        'The first version of the search, with exact totals. Metadata is matched without regard to case.',
      permission: 'token:search',
      body: tokenSearch,
      reply: { status: 200, body: offsetPage(token) },
      example: {
        body: { query: 'metadata.order:4712', page: 1 },
        reply: { pagination: { total_items: 1 }, data: [{ id }] },
      },
      handle: ({ caller, body }) =>
        listByPage(tools, caller, {
          permission: 'token:search',
          route: 'POST /tokens/search',
          filter: { ...parseSearch(body.query ?? ''), metadataCase: 'folded' },
          ...placeOf(body),
        }),
    }),
  ];
}

export function tokenExport(tools: TokenReading & KeyFollowing): Operation {
  return streamOperation({
    id: 'exportTokens',
    method: 'GET',
    path: '/tokens/export',
    summary: 'Read every token, newest first',
    description:
      'Each line is one token. The last line has the number of tokens; an export without it was cut off.',
    permission: 'token:read',
    query: exportQuery,
    reply: { status: 200, body: exportedLine, mediaType: linesMediaType },
    example: {
      query: { container: '/pci/' },
      reply: [{ id: 'line-2', type: 'card_number' }, { id }, { exported: 2 }],
    },
    stream: ({ caller, rowsOfPart: tokensOfBatch, query }) =>
      exportedLines(exportTokens(tools, { caller, tokensOfBatch, filter: filterOf(query) })),
  });
}

/** The last line says that it is the last: an export without it was cut off. */
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

/** A string that cannot be an id matches no token. */
function idsOf({ id }: { readonly id?: readonly string[] }): Pick<TokenFilter, 'ids'> {
  return id ? { ids: id.flatMap((text) => parseTokenId(text) ?? []) } : {};
}

/** @throws VaultError `validation_failed` for an invalid container or invalid metadata. */
function filterOf(query: Static<typeof exportQuery>): TokenFilter {
  return {
    ...(query.container !== undefined && { container: readContainer(query.container) }),
    ...(query.type !== undefined && { type: query.type as TokenTypeName }),
    ...(query.fingerprint !== undefined && { fingerprint: query.fingerprint }),
    metadata: metadataOf(query),
    metadataCase: 'exact',
  };
}

interface ListParameters {
  readonly page?: number | null;
  readonly size?: number | null;
  readonly start?: string | null;
}

/** An empty cursor is what iterating clients send before they have one. */
function placeOf({ page, size, start }: ListParameters) {
  return { page: page ?? undefined, size: size ?? undefined, start: start || undefined };
}

function readContainer(text: string) {
  const container = parseContainer(text);
  if (container === undefined) throw invalid('container', containerForm);
  return container;
}
