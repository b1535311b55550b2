/** Shapes of what token lists and searches are asked. */
import Type from 'typebox';
import { cursorLengthMax } from '../../crypto/cursor.ts';
import { tokenTypes } from '../../values/token-types.ts';
import { queryLengthMax } from '../../vault/token-search/search-query.ts';
import { metadataPatterns, metadataProperties } from './metadata-query.ts';
import { nullable, pageQuery, strict, text } from './shared.ts';

const idsMax = 1000;

const id = Type.Optional(Type.Array(text, { maxItems: idsMax }));
const start = Type.String({ maxLength: cursorLengthMax });

export const tokensQuery = Type.Object(
  {
    id,
    ...pageQuery,
    ...metadataProperties,
  },
  { ...strict, ...metadataPatterns },
);

export const tokensCursorQuery = Type.Object(
  {
    id,
    container: Type.Optional(text),
    type: Type.Optional(Type.Enum(Object.keys(tokenTypes))),
    fingerprint: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9]{1,100}$' })),
    ...pageQuery,
    ...metadataProperties,
  },
  { ...strict, ...metadataPatterns },
);

const query = nullable(Type.String({ maxLength: queryLengthMax }));

export const tokenSearch = Type.Object(
  {
    query,
    page: nullable(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
    size: nullable(Type.Integer({ minimum: 0, maximum: 100 })),
    start: nullable(start),
  },
  { ...strict, title: 'TokenPageSearch' },
);

export const tokenCursorSearch = Type.Object(
  { query, size: tokenSearch.properties.size, start: tokenSearch.properties.start },
  { ...strict, title: 'TokenSearch' },
);
