/** Routes that list and search tokens: the first version by page, the second by cursor. */
import type { Static } from 'typebox';
import { containerForm, parseContainer } from '../../lib/container.ts';
import { invalid } from '../../lib/errors.ts';
import { parseTokenId } from '../../lib/ids.ts';
import { createSerial } from '../../lib/serial.ts';
import type { TokenTypeName } from '../../values/token-types.ts';
import type { TokenFilter } from '../../vault/token-search/filter.ts';
import { parseSearch } from '../../vault/token-search/search-query.ts';
import { listByCursor, listByPage } from '../../vault/tokens/list.ts';
import type { TokenReading } from '../../vault/tokens/read.ts';
import { type Route, route } from '../protocol/route.ts';
import { metadataOf } from '../schemas/metadata-query.ts';
import { cursorPage, offsetPage } from '../schemas/shared.ts';
import { token } from '../schemas/token.ts';
import {
  tokenCursorSearch,
  tokenSearch,
  tokensCursorQuery,
  tokensQuery,
} from '../schemas/token-list.ts';
import type { exportQuery } from '../schemas/token-stream.ts';

export function tokenListRoutes(reading: TokenReading): Route[] {
  const tools = { ...reading, inTurn: createSerial() };
  return [
    route({
      method: 'GET',
      path: '/tokens',
      summary: 'List tokens by page, newest first',
      permission: 'token:read',
      query: tokensQuery,
      reply: { status: 200, body: offsetPage(token) },
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
    route({
      method: 'GET',
      path: '/v2/tokens',
      summary: 'List tokens by cursor, newest first',
      permission: 'token:read',
      query: tokensCursorQuery,
      reply: { status: 200, body: cursorPage(token) },
      handle: ({ caller, query }) =>
        listByCursor(tools, caller, {
          permission: 'token:read',
          route: 'GET /v2/tokens',
          filter: { ...idsOf(query), ...filterOf(query) },
          ...placeOf(query),
        }),
    }),
    route({
      method: 'POST',
      path: '/tokens/search',
      summary: 'Search tokens by page, newest first',
      permission: 'token:search',
      body: tokenSearch,
      reply: { status: 200, body: offsetPage(token) },
      handle: ({ caller, body }) =>
        listByPage(tools, caller, {
          permission: 'token:search',
          route: 'POST /tokens/search',
          filter: { ...parseSearch(body.query ?? ''), metadataCase: 'folded' },
          ...placeOf(body),
        }),
    }),
    route({
      method: 'POST',
      path: '/v2/tokens/search',
      summary: 'Search tokens by cursor, newest first',
      permission: 'token:search',
      body: tokenCursorSearch,
      reply: { status: 200, body: cursorPage(token) },
      handle: ({ caller, body }) =>
        listByCursor(tools, caller, {
          permission: 'token:search',
          route: 'POST /v2/tokens/search',
          filter: { ...parseSearch(body.query ?? ''), metadataCase: 'exact' },
          ...placeOf(body),
        }),
    }),
  ];
}

/** A text that cannot be an id is the id of no token. */
function idsOf({ id }: { readonly id?: readonly string[] }): Pick<TokenFilter, 'ids'> {
  return id ? { ids: id.flatMap((text) => parseTokenId(text) ?? []) } : {};
}

/** @throws VaultError `validation_failed` for an invalid container or invalid metadata. */
export function filterOf(query: Static<typeof exportQuery>): TokenFilter {
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
