/** Shapes that several nouns share. Schemas validate requests, filter replies and make the OpenAPI document. */
import Type, { type Static, type TSchema } from 'typebox';
import { cursorLengthMax } from '../../crypto/cursor.ts';
import type { Json } from '../../lib/json.ts';

/** A schema as JSON, as documents hold it. */
export type Schema = Readonly<Record<string, unknown>>;

export const text = Type.String();
export const lineForm = '^[^\\u0000-\\u001f\\u007f]*$';
/** Text of one line. PostgreSQL keeps no U+0000, and other control characters belong in no name. */
export const line = (lengths: { minLength?: number; maxLength: number }) =>
  Type.String({ ...lengths, pattern: lineForm });
/** Requests name no attribute that is not known: a misspelled one must not be silently ignored. */
export const strict = { additionalProperties: false };
export const uuid = Type.String({ format: 'uuid' });
export const timestamp = Type.String({ format: 'date-time' });
/**
 * Values by name. `Type.Record` would leave out names with a line break, which its pattern does not match:
 * requests with them were not checked, and responses lost them.
 */
export const mapOf = <T extends TSchema>(value: T) =>
  Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: value });
export const textMap = mapOf(Type.String());
/** Null for what is to be removed, or is not shown. */
export const textOrNullMap = mapOf(Type.Union([Type.String(), Type.Null()]));
export const byId = Type.Object({ id: text });

/** JSON of any kind. Its own limits are checked where it is read. */
export const anyJson = Type.Unsafe<Json>({});

/** Absent and null mean the same in a create request. */
export const nullable = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** A page of a cursor list. */
export const cursorPage = <T extends TSchema>(item: T) =>
  Type.Object(
    {
      pagination: Type.Object(
        {
          page_size: Type.Integer(),
          page_number: Type.Optional(Type.Integer()),
          next: Type.Optional(text),
        },
        { title: 'CursorPagination' },
      ),
      data: Type.Array(item),
    },
    { title: `${titleOf(item)}List` },
  );

/** What the query of an offset list may have in addition to its filters. */
export const pageQuery = {
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647 })),
  size: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
  start: Type.Optional(Type.String({ maxLength: cursorLengthMax })),
};

/** A page of an offset list, which can also be followed by its cursor. */
export const offsetPage = <T extends TSchema>(item: T) =>
  Type.Object(
    {
      pagination: Type.Object(
        {
          total_items: Type.Integer(),
          page_number: Type.Integer(),
          page_size: Type.Integer(),
          total_pages: Type.Integer(),
          next: Type.Optional(text),
        },
        { title: 'PagePagination' },
      ),
      data: Type.Array(item),
    },
    { title: `${titleOf(item)}Page` },
  );

/** The name of a schema in the description; what has none is written where it is used. */
export function titleOf(schema: object): string | undefined {
  return 'title' in schema ? String(schema.title) : undefined;
}
