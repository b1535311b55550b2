/** The attributes of transforms. Each check names the attribute in its error. */

import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import type { ValidationErrors } from '../../base/validation-errors.ts';
import { ExpressionError } from '../../expressions/evaluation/error.ts';
import { type Step, singularSteps } from '../../expressions/filters/json-path.ts';
import { compileText } from '../../expressions/request-parts/compile.ts';
import { isHeaderName } from './append.ts';
import { compilePattern, PatternError } from './mask.ts';

/** Limits the string that a transform appends, including its expressions. */
export const valueLengthMax = 10_000;

/** The context for parsing one transform. */
export interface TransformReading {
  readonly errors: ValidationErrors;
  /** The path of the transform, such as `response_transforms[0]`. */
  readonly path: string;
  readonly options: JsonObject;
  /** The identifiers of earlier transforms in the list. */
  readonly identifiers: Set<string>;
}

export function isRegex(given: Json | undefined, errors: ValidationErrors, path: string): boolean {
  if (given === 'regex') return true;
  errors.add(
    path,
    given === 'chase_stratus_pan'
      ? 'must be regex; chase_stratus_pan is not supported, because its format is not public'
      : 'must be regex',
  );
  return false;
}

export function readReplacement(given: Json | undefined, errors: ValidationErrors, path: string) {
  const text = typeof given === 'string' ? given : '';
  if ([...text.slice(0, 3)].length === 1 && text.isWellFormed()) return text;
  errors.add(path, 'must be exactly one character');
  return undefined;
}

export function readPattern(given: Json | undefined, errors: ValidationErrors, path: string) {
  if (typeof given !== 'string') {
    errors.add(path, 'must be a regular expression');
    return undefined;
  }
  try {
    return compilePattern(given);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    errors.add(path, error.message);
    return undefined;
  }
}

const identifierPattern = /^[A-Za-z0-9_-]{1,100}$/;

export function readIdentifier({
  options,
  errors,
  path,
  identifiers,
}: TransformReading): string | undefined {
  const given = options['identifier'] ?? undefined;
  if (given === undefined) return undefined;
  const place = `${path}.options.identifier`;
  if (typeof given !== 'string' || !identifierPattern.test(given)) {
    errors.add(place, 'must have 1 to 100 letters, digits, "-" or "_"');
    return undefined;
  }
  if (identifiers.has(given)) errors.add(place, 'must be unique in its list');
  identifiers.add(given);
  return given;
}

export function readToken({ options, errors, path }: TransformReading): JsonObject | undefined {
  const token = options['token'] ?? undefined;
  const place = `${path}.options.token`;
  if (!isObject(token)) {
    errors.add(place, 'must be an object, the request to create a token');
    return undefined;
  }
  return checkStrings(token, errors, place) ? token : undefined;
}

/** Strings at any depth may hold expressions; names of members do not. */
function checkStrings(json: Json, errors: ValidationErrors, path: string): boolean {
  if (typeof json === 'string') return checkText(json, 'text', { errors, path });
  if (typeof json !== 'object' || json === null) return true;
  return Object.values(json).every((member) => checkStrings(member, errors, path));
}

function checkText(
  text: string,
  form: 'text' | 'header',
  { errors, path }: { readonly errors: ValidationErrors; readonly path: string },
): boolean {
  try {
    compileText(text, form);
    return true;
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    errors.add(path, error.public);
    return false;
  }
}

const fieldValuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

export function readValue(
  { options, errors, path }: TransformReading,
  form: 'text' | 'header',
): string | undefined {
  const value = options['value'] ?? undefined;
  const place = `${path}.options.value`;
  if (typeof value !== 'string' || value.length > valueLengthMax) {
    errors.add(place, `must be text of at most ${valueLengthMax} characters`);
    return undefined;
  }
  if (form === 'header' && !fieldValuePattern.test(value)) {
    errors.add(place, 'must not have a character that a header cannot hold');
    return undefined;
  }
  return checkText(value, form, { errors, path: place }) ? value : undefined;
}

export function readPath({ options, errors, path }: TransformReading): readonly Step[] | undefined {
  const given = options['location'] ?? undefined;
  const steps = typeof given === 'string' ? singularSteps(given) : undefined;
  if (steps !== undefined && steps.length > 0) return steps;
  errors.add(
    `${path}.options.location`,
    "must be a JSONPath of one place, such as '$.a.b[0]', of at most 64 names and indexes",
  );
  return undefined;
}

export function readHeaderName({ options, errors, path }: TransformReading): string | undefined {
  const given = options['location'] ?? undefined;
  if (typeof given === 'string' && isHeaderName(given)) return given;
  errors.add(
    `${path}.options.location`,
    'must be the name of a header, and not one that frames the message or is for one connection',
  );
  return undefined;
}
