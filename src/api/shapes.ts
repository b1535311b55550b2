/** Shapes and attributes that several resources share. */
import Type, { type Static, type TSchema } from 'typebox';
import type { Json } from '../base/json.ts';
import { lineForm } from '../http/protocol/validation.ts';
import { cursorLengthMax } from '../keys/cursor.ts';
import { attribute, object, titleOf } from './declaration/shape.ts';

export const text = Type.String();
/** A string of one line. PostgreSQL cannot store U+0000, and other control characters have no place in a name. */
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
/** Null for a member that is to be removed, or is not shown. */
export const textOrNullMap = mapOf(Type.Union([Type.String(), Type.Null()]));

/** JSON of any kind. Its own limits are checked where it is read. */
export const anyJson = Type.Unsafe<Json>({});

/** Absent and null mean the same in a create request. */
export const nullable = <T extends TSchema>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** The document shows this for a removed attribute: older clients may still send null. */
export const onlyNull = { type: 'null', deprecated: true };

/** What stored things have in common. */
export const shared = {
  id: attribute(uuid, 'Identifies it.'),
  tenant_id: attribute(uuid, 'The tenant that owns it.'),
  name: attribute(text, 'For people, on one line.'),
  created_by: attribute(uuid, 'The application that created it.'),
  created_at: attribute(timestamp, 'When it was created.'),
  modified_by: attribute(Type.Optional(uuid), 'The application that last modified it.'),
  modified_at: attribute(Type.Optional(timestamp), 'When it was last modified.'),
  expires_at: attribute(timestamp, 'When it ends.'),
};

/** A name in a request. */
export const name = attribute(line({ minLength: 1, maxLength: 200 }), shared.name);

/** The id in a path. */
export const pathId = attribute(text, 'The id of what the request is about.');
export const byId = object({ id: pathId });

const page = {
  page: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
  size: Type.Integer({ minimum: 0, maximum: 100 }),
  start: Type.String({ maxLength: cursorLengthMax }),
};

/** The meaning of a cursor where pages have no numbers. */
export const cursor = 'The cursor `pagination.next` of an earlier response to the same request.';

/** The query parameters that an offset list accepts in addition to its filters. */
export const pageQuery = {
  page: attribute(Type.Optional(page.page), 'The number of the page, from 1.'),
  size: attribute(
    Type.Optional(page.size),
    'How many items a page has at most: 20 unless given, and at most 100.',
  ),
  start: attribute(
    Type.Optional(page.start),
    `${cursor.slice(0, -1)}; it takes the place of \`page\`.`,
  ),
};

/** The same in the body of a search. */
export const pageBody = {
  page: attribute(nullable(page.page), pageQuery.page),
  size: attribute(nullable(page.size), pageQuery.size),
  start: attribute(nullable(page.start), pageQuery.start),
};

/** Filters of lists. */
export const filters = {
  ids: attribute(
    Type.Optional(Type.Array(text, { maxItems: 100 })),
    'Only these; repeat it for several.',
  ),
  name: attribute(
    Type.Optional(line({ maxLength: 200 })),
    'Only of this name; `*` stands for any text.',
  ),
};

const pagination = {
  page_size: attribute(Type.Integer(), 'How many items a page has at most.'),
  page_number: attribute(Type.Integer(), 'The number of the page.'),
  next: attribute(Type.Optional(text), 'The cursor of the next page; absent on the last one.'),
};

const pageOf = <P extends TSchema, T extends TSchema>(place: P, item: T, title: string) =>
  object(
    {
      pagination: attribute(place, 'Where the page is in the list.'),
      data: attribute(Type.Array(item), 'The items of the page.'),
    },
    { title },
  );

const cursorPagination = object(
  { ...pagination, page_number: Type.Optional(pagination.page_number) },
  { title: 'CursorPagination' },
);

/** A page of a cursor list. */
export const cursorPage = <T extends TSchema>(item: T) =>
  pageOf(cursorPagination, item, `${titleOf(item)}List`);

const pagePagination = object(
  {
    total_items: attribute(Type.Integer(), 'How many items there are in total.'),
    page_number: pagination.page_number,
    page_size: pagination.page_size,
    total_pages: attribute(Type.Integer(), 'How many pages there are in total.'),
    next: pagination.next,
  },
  { title: 'PagePagination' },
);

/** A page of an offset list, which can also be followed by its cursor. */
export const offsetPage = <T extends TSchema>(item: T) =>
  pageOf(pagePagination, item, `${titleOf(item)}Page`);

export const problem = object(
  {
    type: attribute(text, 'The kind of problem, for programs.'),
    title: attribute(text, 'The kind of problem, in words.'),
    status: attribute(Type.Integer(), 'The HTTP status.'),
    detail: attribute(text, 'What is wrong with this request. It never repeats a value of it.'),
    errors: attribute(
      Type.Optional(mapOf(Type.Array(Type.String()))),
      'Messages by attribute, named by its path such as `data.number`.',
    ),
  },
  { title: 'Problem', description: 'Why a request was refused, or failed (RFC 9457).' },
);
