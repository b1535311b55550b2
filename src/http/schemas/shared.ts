/** Shapes that several nouns share. Schemas validate requests, filter replies and make the OpenAPI document. */
import Type, { type TSchema } from 'typebox';
import type { Json } from '../../lib/json.ts';

export const text = Type.String();
/** Requests name no attribute that is not known: a misspelt one must not be ignored in silence. */
export const strict = { additionalProperties: false };
export const uuid = Type.String({ format: 'uuid' });
export const timestamp = Type.String({ format: 'date-time' });
export const textMap = Type.Record(Type.String(), Type.String());
export const byId = Type.Object({ id: text });

/** JSON of any kind. Its own limits are checked where it is read. */
export const anyJson = Type.Unsafe<Json>({});

/** Absent and null mean the same in a create request. */
export const nullable = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** A page of a cursor list. */
export const cursorPage = <T extends TSchema>(item: T) =>
  Type.Object({
    pagination: Type.Object({ page_size: Type.Integer(), next: Type.Optional(text) }),
    data: Type.Array(item),
  });
