/** Validation of the shape of requests by their schemas, and messages that name each wrong attribute. */
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/schema';
import { Settings } from 'typebox/system';
import { type AttributeErrors, invalid, type VaultError } from '../../base/errors.ts';
import { messagesMax } from '../../base/validation-errors.ts';
import type { RequestContext } from './request-context.ts';
import type { Route } from './route.ts';
import { shortened } from './shortened-body.ts';

/**
 * A string without control characters, among them those that end a line or turn the direction of writing, with which a
 * name could pass for another one in a list; and without half of a surrogate pair, which no database keeps. A violation
 * gets a message of its own. It means the same with and without the flag `u` of regular expressions.
 */
export const lineForm =
  '^(?:[^\\u0000-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]|' +
  '[\\ud800-\\udbff][\\udc00-\\udfff])*$';

// The library counts what one response may name for all schemas alike, and by itself stops at eight.
Settings.Set({ maxErrors: messagesMax });

/** The parts of a request as their schemas let them through. */
export function createValidation({
  params,
  query,
  body,
  ...route
}: Route): (context: Pick<RequestContext, 'params' | 'query' | 'body'>) => void {
  const validateParams = params && compileValidator(params, 'params');
  const validateQuery = query && compileValidator(query, 'querystring');
  const validateBody = body && !('stream' in route) && compileValidator(body, 'body');
  const takesAny = body !== undefined && Object.keys(body).length === 0;
  const absent = route.bodyMayBeEmpty ? {} : null;
  return (context) => {
    if (validateParams) context.params = valid(validateParams(context.params));
    if (validateBody) {
      // Any JSON is more than nothing.
      if (takesAny && context.body === undefined) throw invalid('body', 'is required');
      context.body = valid(validateBody(context.body === undefined ? absent : context.body));
    }
    if (validateQuery) context.query = valid(validateQuery(context.query));
  };
}

function valid(validated: ValidationResult): unknown {
  if ('error' in validated) throw validated.error;
  return validated.value;
}

export type RequestPart = 'body' | 'params' | 'querystring' | 'headers';

/** Attribute names are echoed to the caller up to this length. */
const nameLengthMax = 100;

export type ValidationResult = { readonly value: unknown } | { readonly error: VaultError };

/**
 * Paths and queries hold only strings, so their numbers and lists are parsed from strings first. A schema is
 * compiled with the first request that needs it: most vaults never use most routes.
 */
export function compileValidator(
  schema: TSchema,
  part: RequestPart,
): (value: unknown) => ValidationResult {
  let compiled: Validator | undefined;
  const isText = part === 'body' || !readsText(schema);
  return (given) => {
    const value = isText ? given : fromText(schema, given);
    compiled ??= Compile(schema);
    if (compiled.Check(value)) return { value };
    return { error: invalid(messagesFor(compiled, value)) };
  };
}

/** The errors of a value, as far as it was checked. */
function messagesFor(compiled: Validator, given: unknown): AttributeErrors {
  const { value, cut } = shortened(given);
  const [, errors] = compiled.Errors(value);
  const messages = messagesOf(errors, given);
  if (cut === undefined || Object.keys(messages).length > 0) return messages;
  return {
    [pathOf(cut) || 'body']: ['is not valid, and has too many members to check each of them'],
  };
}

/** Whether the attribute is present after all, and was only left out of the shortened value. */
function isThere(given: unknown, pointer: string, name: string): boolean {
  const object = namesOf(pointer).reduce<unknown>(
    (value, member) => (value as Readonly<Record<string, unknown>>)[member],
    given,
  );
  return Object.hasOwn(object as object, name);
}

const wholeNumberForm = /^-?[0-9]{1,15}$/;

/** Whether the schema expects any member to be something other than a string. */
function readsText({ properties }: { readonly properties?: Readonly<Record<string, TSchema>> }) {
  return Object.values(properties ?? {}).some(
    (member) => (member as { readonly type?: string }).type !== 'string',
  );
}

/** The value of a string where the schema expects another type; an unparsable string is left to fail. */
function fromText(schema: TSchema, given: unknown): unknown {
  const { type, properties, items } = schema as {
    readonly type?: string;
    readonly properties?: Readonly<Record<string, TSchema>>;
    readonly items?: TSchema;
  };
  if (properties && typeof given === 'object' && given !== null) {
    return Object.fromEntries(
      Object.entries(given).map(([name, value]) => {
        const member = Object.hasOwn(properties, name) ? properties[name] : undefined;
        return [name, member ? fromText(member, value) : value];
      }),
    );
  }
  if (type === 'array' && items) return [given].flat().map((item) => fromText(items, item));
  if (type === 'integer' && typeof given === 'string' && wholeNumberForm.test(given)) {
    return Number(given);
  }
  if (type === 'boolean' && (given === 'true' || given === 'false')) return given === 'true';
  return given;
}

interface SchemaError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/** Schema errors as messages by dotted path. No message ever holds a value. */
function messagesOf(errors: readonly SchemaError[], whole: unknown): AttributeErrors {
  const found = new Map<string, Set<string>>();
  const types = new Map<string, string[]>();
  const add = (path: string, message: string) =>
    found.set(path, (found.get(path) ?? new Set()).add(message));
  for (const { keyword, instancePath, params, message } of errors) {
    const path = pathOf(instancePath);
    const given = params as Readonly<Record<string, unknown>>;
    if (keyword === 'boolean') {
      // Each attribute that a schema does not list is refused by the schema `false`.
      add(path, 'is not a known attribute');
    } else if (keyword === 'required') {
      for (const name of textsOf(given['requiredProperties'])) {
        if (!isThere(whole, instancePath, name)) add(join(path, name), 'is required');
      }
    } else if (keyword === 'type') {
      types.set(path, [...(types.get(path) ?? []), ...[given['type']].flat().map(String)]);
    } else if (keyword === 'enum' || keyword === 'const') {
      add(
        path,
        `must be one of ${[given['allowedValues'] ?? given['allowedValue']].flat().join(', ')}`,
      );
    } else if (keyword === 'pattern' && given['pattern'] === lineForm) {
      add(path, 'must not contain control characters or half of a surrogate pair');
    } else if (keyword !== 'anyOf' && keyword !== 'additionalProperties') {
      add(path, message);
    }
  }
  for (const [path, names] of types) {
    // An attribute that may be null, and is not because of what lies within it, is named by that.
    const within = [...found.keys(), ...types.keys()].some((other) => isWithin(path, other));
    if (!(within && names.every((name) => name === 'null')))
      add(path, `must be ${[...new Set(names)].map(named).join(' or ')}`);
  }
  return Object.fromEntries([...found].map(([path, messages]) => [path || 'body', [...messages]]));
}

const articles: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  array: 'an array',
};

function named(type: string): string {
  return articles[type] ?? type;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function isWithin(path: string, other: string): boolean {
  return other.startsWith(`${path}.`) || other.startsWith(`${path}[`);
}

/** `/containers/0` as `containers[0]`, `/metadata/k` as `metadata.k`. */
function pathOf(pointer: string): string {
  return namesOf(pointer).reduce(
    (path, name) => (/^\d+$/.test(name) ? `${path}[${name}]` : join(path, name)),
    '',
  );
}

function namesOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function join(path: string, name: string): string {
  const short = name.slice(0, nameLengthMax);
  return path === '' ? short : `${path}.${short}`;
}
