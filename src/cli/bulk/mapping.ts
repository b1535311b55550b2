/** The mapping of an import: which columns of a file of another vault become which attributes of a token. */
import Type, { type Static } from 'typebox';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { closestTo } from '../../base/similar.ts';
import { compileValidator } from '../../http/protocol/validation.ts';
import { UsageError } from '../terminal/command.ts';
import { readGivenFile } from '../terminal/given-text.ts';

const strict = { additionalProperties: false };

const source = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Object(
    {
      column: Type.String({ minLength: 1 }),
      /** The column has both, such as `12/30`. */
      as: Type.Optional(Type.Enum(['expiration_month', 'expiration_year'])),
    },
    strict,
  ),
  Type.Object({ value: Type.Unknown() }, strict),
]);

const sources = Type.Record(Type.String({ minLength: 1 }), source);

const form = Type.Object(
  {
    type: Type.String({ minLength: 1 }),
    id: Type.Optional(source),
    data: Type.Union([source, sources]),
    metadata: Type.Optional(sources),
    expires_at: Type.Optional(source),
    // What follows is the same for all tokens.
    containers: Type.Optional(Type.Array(Type.String())),
    mask: Type.Optional(Type.Unknown()),
    search_indexes: Type.Optional(Type.Array(Type.String())),
    fingerprint_expression: Type.Optional(Type.String()),
    deduplicate_token: Type.Optional(Type.Boolean()),
    /** Where the list of records is in a JSON document. */
    records: Type.Optional(Type.String({ minLength: 1 })),
    /** Between the fields of a CSV file, where it is not the one that the first line has most of. */
    delimiter: Type.Optional(Type.String({ minLength: 1, maxLength: 1 })),
  },
  strict,
);

type ValueSource = Static<typeof source>;
export type Mapping = Static<typeof form>;
/** A record of the file, whose values have the names of its columns. */
export type SourceFields = Readonly<Record<string, Json>>;

const validate = compileValidator(form, 'body');
const constants = [
  'containers',
  'mask',
  'search_indexes',
  'fingerprint_expression',
  'deduplicate_token',
] as const;

/** @throws UsageError that names every attribute that is wrong. */
export function readMapping(file: string): Mapping {
  const validated = validate(parsed(file));
  if (!('error' in validated)) return validated.value as Mapping;
  const { error } = validated;
  const errors = error instanceof VaultError ? Object.entries(error.errors ?? {}) : [];
  const problems = errors.map(([path, messages]) => `${path} ${messages.join(', ')}`).join('; ');
  throw new UsageError(`the mapping ${file} is wrong: ${problems}`);
}

function parsed(file: string): unknown {
  const text = readGivenFile(file);
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`the mapping ${file} is not JSON`);
  }
}

/** @throws UsageError that names the columns of the mapping which the file does not have. */
export function requireColumns(mapping: Mapping, columns: readonly string[]): void {
  const missing = [...new Set(columnsOf(mapping))].filter((name) => !columns.includes(name));
  if (missing.length === 0) return;
  const named = missing.map((name) => {
    const meant = closestTo(name, columns);
    return meant === undefined ? name : `${name} (did you mean ${meant}?)`;
  });
  throw new UsageError(
    `the mapping names columns that the file does not have: ${named.join(', ')}`,
  );
}

function columnsOf({ id, data, metadata, expires_at }: Mapping): readonly string[] {
  const all = [id, expires_at, ...(isSource(data) ? [data] : Object.values(data))];
  return [...all, ...Object.values(metadata ?? {})].flatMap((one) => {
    if (typeof one === 'string') return one;
    return one !== undefined && 'column' in one ? one.column : [];
  });
}

function isSource(data: Mapping['data']): data is ValueSource {
  if (typeof data === 'string') return true;
  const names = Object.keys(data).sort().join();
  return names === 'value' || names === 'column' || names === 'as,column';
}

/** The request to create the token of a record. What the record leaves empty is left out. */
export function requestOf(mapping: Mapping, fields: SourceFields): JsonObject {
  const { type, id, data, metadata, expires_at } = mapping;
  const given = {
    id: id && textOf(valueIn(id, fields)),
    type,
    data: isSource(data)
      ? normalized(type === 'card_number' ? 'number' : '', valueIn(data, fields))
      : mapped(data, (one, name) => normalized(name, valueIn(one, fields))),
    metadata: metadata && mapped(metadata, (one) => textOf(valueIn(one, fields))),
    expires_at: expires_at && textOf(valueIn(expires_at, fields)),
    ...Object.fromEntries(constants.map((name) => [name, mapping[name] as Json | undefined])),
  };
  return withoutAbsent(given);
}

function mapped(
  all: Readonly<Record<string, ValueSource>>,
  value: (one: ValueSource, name: string) => Json | undefined,
): JsonObject {
  const entries = Object.entries(all).map(([name, one]) => [name, value(one, name)] as const);
  return withoutAbsent(Object.fromEntries(entries));
}

function withoutAbsent(values: Readonly<Record<string, Json | undefined>>): JsonObject {
  const present = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as JsonObject;
}

function valueIn(one: ValueSource, fields: SourceFields): Json | undefined {
  if (typeof one === 'string') return presentIn(fields, one);
  if ('value' in one) return one.value as Json;
  const value = presentIn(fields, one.column);
  return one.as === undefined || value === undefined ? value : partOfExpiry(String(value), one.as);
}

/** The value of a column, or of a path such as `card.number` into a JSON record; empty text is absent. */
function presentIn(fields: SourceFields, column: string): Json | undefined {
  const value = Object.hasOwn(fields, column) ? fields[column] : valueAt(fields, column);
  if (value === null || value === undefined) return undefined;
  if (typeof value !== 'string') return value;
  const text = value.trim();
  return text === '' ? undefined : text;
}

/** What lies there in a JSON value; numbers select members of lists. */
export function valueAt(value: unknown, path: string): Json | undefined {
  let found = value;
  for (const name of path.split('.')) {
    const isThere =
      (isObject(found as Json) || Array.isArray(found)) && Object.hasOwn(found as object, name);
    if (!isThere) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found as Json;
}

function textOf(value: Json | undefined): Json | undefined {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

const monthFirst = /^(\d{1,2})\s*[/-]?\s*(\d{4}|\d{2})$/;
const yearFirst = /^(\d{4})[/-](\d{1,2})(?:[/-]\d{1,2})?$/;

/** Of `12/30`, `1230`, `12/2030`, `122030`, `2030-12` or `2030-12-31`; other text stays, and the vault refuses it. */
function partOfExpiry(text: string, part: 'expiration_month' | 'expiration_year'): string {
  const [, month, year] = monthFirst.exec(text) ?? [];
  if (month !== undefined && year !== undefined) return part === 'expiration_month' ? month : year;
  const [, firstYear, secondMonth] = yearFirst.exec(text) ?? [];
  return (part === 'expiration_month' ? secondMonth : firstYear) ?? text;
}

/** As the data of tokens is written: digits without separators, months and years as numbers of full years. */
const normalizers: Readonly<Record<string, (text: string) => Json>> = {
  number: (text) => text.replace(/[ -]/g, ''),
  expiration_month: (text) => (/^\d{1,2}$/.test(text) ? Number(text) : text),
  expiration_year: (text) => {
    if (!/^(?:\d{2}|\d{4})$/.test(text)) return text;
    return text.length === 2 ? 2000 + Number(text) : Number(text);
  },
};

function normalized(name: string, value: Json | undefined): Json | undefined {
  const normalize = Object.hasOwn(normalizers, name) ? normalizers[name] : undefined;
  if (normalize === undefined || (typeof value !== 'string' && typeof value !== 'number')) {
    return value;
  }
  return normalize(String(value));
}
