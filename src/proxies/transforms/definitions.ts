/** Parses the lists of transforms that a proxy applies to requests and responses. */

import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import type { ValidationErrors } from '../../base/validation-errors.ts';
import type { Step } from '../../expressions/filters/json-path.ts';
import {
  type CodeRuntime,
  codeForm,
  isCode,
  readRuntime,
} from '../../reactors/code/code-runtime.ts';
import {
  isRegex,
  readHeaderName,
  readIdentifier,
  readPath,
  readPattern,
  readReplacement,
  readToken,
  readValue,
  type TransformReading,
} from './attributes.ts';
import type { Mask } from './mask.ts';

export interface TokenizeTransform {
  readonly type: 'tokenize';
  /** A request to create a token, with expressions in its strings. */
  readonly token: JsonObject;
  readonly identifier: string | undefined;
}

export interface MaskTransform extends Mask {
  readonly type: 'mask';
}

export interface AppendJsonTransform {
  readonly type: 'append_json';
  readonly value: string;
  readonly location: readonly Step[];
}

export interface AppendTextTransform {
  readonly type: 'append_text';
  readonly value: string;
}

export interface AppendHeaderTransform {
  readonly type: 'append_header';
  readonly value: string;
  /** The name of the header. */
  readonly location: string;
}

/** JavaScript of the tenant, which runs in the sandbox. Whether it can run is checked when it is stored. */
export interface CodeTransform {
  readonly type: 'code';
  readonly code: string;
  readonly runtime: CodeRuntime;
}

export type RequestTransform = TokenizeTransform | CodeTransform;
export type ResponseTransform =
  | CodeTransform
  | TokenizeTransform
  | MaskTransform
  | AppendJsonTransform
  | AppendTextTransform
  | AppendHeaderTransform;

/** Transforms in one list. */
export const transformsMax = 20;

type ReadTransform<T> = (given: JsonObject, reading: TransformReading) => T | undefined;

interface TransformKind<T> {
  readonly members: readonly string[];
  readonly options: readonly string[];
  readonly read: ReadTransform<T>;
}

const code: TransformKind<CodeTransform> = {
  members: ['code', 'options'],
  options: ['runtime'],
  read: (given, { errors, path, options }) => {
    const text = given['code'];
    const place = { errors, path: `${path}.options.runtime`, mayBeAsync: false };
    const runtime = readRuntime(options['runtime'], place);
    if (typeof text === 'string' && isCode(text)) return { type: 'code', code: text, runtime };
    errors.add(`${path}.code`, codeForm);
    return undefined;
  },
};

const tokenize: TransformKind<TokenizeTransform> = {
  members: ['options'],
  options: ['token', 'identifier'],
  read: (_given, reading) => {
    const token = readToken(reading);
    const identifier = readIdentifier(reading);
    return token && { type: 'tokenize', token, identifier };
  },
};

const mask: TransformKind<MaskTransform> = {
  members: ['matcher', 'expression', 'replacement'],
  options: [],
  read: (given, { errors, path }) => {
    const replacement = readReplacement(given['replacement'], errors, `${path}.replacement`);
    if (!isRegex(given['matcher'], errors, `${path}.matcher`)) return undefined;
    const pattern = readPattern(given['expression'], errors, `${path}.expression`);
    if (pattern === undefined || replacement === undefined) return undefined;
    return { type: 'mask', pattern, replacement };
  },
};

const appendJson: TransformKind<AppendJsonTransform> = {
  members: ['options'],
  options: ['value', 'location'],
  read: (_given, reading) => {
    const value = readValue(reading, 'text');
    const location = readPath(reading);
    if (value === undefined || location === undefined) return undefined;
    return { type: 'append_json', value, location };
  },
};

const appendText: TransformKind<AppendTextTransform> = {
  members: ['options'],
  options: ['value', 'location'],
  read: (_given, reading) => {
    const value = readValue(reading, 'text');
    return value === undefined ? undefined : { type: 'append_text', value };
  },
};

const appendHeader: TransformKind<AppendHeaderTransform> = {
  members: ['options'],
  options: ['value', 'location'],
  read: (_given, reading) => {
    const value = readValue(reading, 'header');
    const location = readHeaderName(reading);
    if (value === undefined || location === undefined) return undefined;
    return { type: 'append_header', value, location };
  },
};

type Kinds<T> = Readonly<Record<string, TransformKind<T>>>;

const requestKinds: Kinds<RequestTransform> = { code, tokenize };
const responseKinds: Kinds<ResponseTransform> = {
  code,
  mask,
  tokenize,
  append_json: appendJson,
  append_text: appendText,
  append_header: appendHeader,
};

/** Returns the valid transforms; problems with the others are added to the errors. Absent means an empty list. */
export function parseRequestTransforms(
  given: Json | undefined,
  errors: ValidationErrors,
  path = 'request_transforms',
): readonly RequestTransform[] {
  return parseList(requestKinds, given, { errors, path });
}

/** The same for response transforms. */
export function parseResponseTransforms(
  given: Json | undefined,
  errors: ValidationErrors,
  path = 'response_transforms',
): readonly ResponseTransform[] {
  return parseList(responseKinds, given, { errors, path });
}

function parseList<T>(
  kinds: Kinds<T>,
  given: Json | undefined,
  { errors, path }: { readonly errors: ValidationErrors; readonly path: string },
): readonly T[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given) || given.length > transformsMax) {
    errors.add(path, `must be a list of at most ${transformsMax} transforms`);
    return [];
  }
  const list: readonly Json[] = given;
  const identifiers = new Set<string>();
  if (list.filter((one) => isObject(one) && typeOf(one) === 'code').length > 1) {
    errors.add(path, 'must have at most one transform of type code');
  }
  return list.flatMap((one, index) => {
    const place = { errors, path: `${path}[${index}]`, identifiers };
    return parseOne(kinds, one, place) ?? [];
  });
}

function typeOf(given: JsonObject): Json {
  return given['type'] ?? 'code';
}

function parseOne<T>(kinds: Kinds<T>, given: Json, place: Omit<TransformReading, 'options'>) {
  const { errors, path } = place;
  if (!isObject(given)) {
    errors.add(path, 'must be an object');
    return undefined;
  }
  const type = typeOf(given);
  const kind = typeof type === 'string' && Object.hasOwn(kinds, type) ? kinds[type] : undefined;
  if (kind === undefined) {
    errors.add(`${path}.type`, `must be one of ${Object.keys(kinds).join(', ')}`);
    return undefined;
  }
  refuseOthers(given, ['type', ...kind.members], { errors, path, type });
  const options = given['options'] ?? {};
  if (!isObject(options)) {
    errors.add(`${path}.options`, 'must be an object');
    return undefined;
  }
  refuseOthers(options, kind.options, { errors, path: `${path}.options`, type });
  return kind.read(given, { ...place, options });
}

/** Members that every transform has in the product's models, although only some types use them. */
const knownMembers = new Set([
  ...['type', 'code', 'matcher', 'expression', 'replacement', 'options'],
  ...['token', 'identifier', 'value', 'location', 'runtime'],
]);

/** Does not repeat unknown names: they may be data that a client sent in the wrong place. */
function refuseOthers(
  given: JsonObject,
  members: readonly string[],
  { errors, path, type }: { errors: ValidationErrors; path: string; type: Json },
): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || members.includes(name)) continue;
    if (knownMembers.has(name)) {
      errors.add(`${path}.${name}`, `must be absent in a transform of type ${String(type)}`);
    } else {
      errors.add(path, 'has an unknown attribute');
    }
  }
}
