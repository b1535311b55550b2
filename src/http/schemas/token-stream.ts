/** Shapes of the lines that bulk creation and export are made of. */
import Type from 'typebox';
import { metadataPatterns } from './metadata-query.ts';
import { mapOf, strict, text } from './shared.ts';
import { token } from './token.ts';
import { tokensCursorQuery } from './token-list.ts';

export const problem = Type.Object(
  {
    type: text,
    title: text,
    status: Type.Integer(),
    detail: text,
    errors: Type.Optional(mapOf(Type.Array(Type.String()))),
  },
  { title: 'Problem', description: 'Why a request was refused, or failed (RFC 9457).' },
);

export const createdLine = Type.Object(
  {
    line: Type.Optional(Type.Integer()),
    status: Type.Optional(Type.Integer()),
    token: Type.Optional(token),
    problem: Type.Optional(problem),
  },
  {
    title: 'CreatedLine',
    description:
      'The result of one line of the request: the token, or the problem. A line that has only a problem ' +
      'ends a response that could not continue; the lines after the last numbered one were not processed.',
  },
);

export const exportedLine = Type.Object(
  {
    ...Type.Partial(token).properties,
    exported: Type.Optional(Type.Integer()),
    problem: Type.Optional(problem),
  },
  {
    title: 'ExportedLine',
    description:
      'A token. Only the last line is different: the number of tokens exported, or the problem that ' +
      'ended the export early.',
  },
);

const {
  id: _id,
  start: _start,
  page: _page,
  size: _size,
  ...filters
} = tokensCursorQuery.properties;

export const exportQuery = Type.Object(filters, { ...strict, ...metadataPatterns });
