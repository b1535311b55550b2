/** The kinds of arguments of filters, one function for each. */
import { saysExpiry } from './convert.ts';
import { compilePath, type JsonPath } from './json-path.ts';

export interface Argument<T> {
  readonly name: string;
  /** Completes the sentence "the argument … must be". */
  readonly form: string;
  /** Absent when the argument is required. */
  readonly fallback: T | undefined;
  /** Units of work for each of its characters, where that is more than one. */
  readonly weight?: number;
  /** Returns `undefined` for a value of another kind. */
  read(value: unknown): T | undefined;
}

/** The values of a list of arguments, in order. */
export type ArgumentValues<Arguments extends readonly Argument<unknown>[]> = {
  readonly [Index in keyof Arguments]: Arguments[Index] extends Argument<infer T> ? T : never;
};

/** The most characters that a filter reveals, pads to, or keeps. */
const lengthMax = 10_000;
const preservedMax = 100;

export function length(name: string, fallback?: number): Argument<number> {
  return {
    name,
    form: `a whole number from 0 to ${lengthMax}`,
    fallback,
    read: (value) =>
      typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= lengthMax
        ? value
        : undefined,
  };
}

const flags = new Map<unknown, boolean>([
  [true, true],
  [false, false],
  ['true', true],
  ['false', false],
]);

export function flag(name: string, fallback?: boolean): Argument<boolean> {
  return { name, form: "'true' or 'false'", fallback, read: (value) => flags.get(value) };
}

export function character(name: string, fallback?: string): Argument<string> {
  return {
    name,
    form: 'one character',
    fallback,
    read: (value) =>
      typeof value === 'string' && [...value.slice(0, 3)].length === 1 && value.isWellFormed()
        ? value
        : undefined,
  };
}

export function characters(name: string, fallback?: string): Argument<string> {
  return {
    name,
    form: `text of at most ${preservedMax} characters`,
    fallback,
    read: (value) =>
      typeof value === 'string' && value.length <= preservedMax ? value : undefined,
  };
}

export function text(name: string, weight = 1): Argument<string> {
  return {
    name,
    weight,
    form: 'text',
    fallback: undefined,
    read: (value) => (typeof value === 'string' && value !== '' ? value : undefined),
  };
}

export function oneOf(
  name: string,
  choices: readonly string[],
  fallback: string,
): Argument<string> {
  return {
    name,
    form: `one of ${choices.join(', ')}`,
    fallback,
    read: (value) => (typeof value === 'string' && choices.includes(value) ? value : undefined),
  };
}

/** Compiling a path takes up to a microsecond for each character. */
const pathWeight = 300;

export function jsonPath(name: string): Argument<JsonPath> {
  return {
    name,
    weight: pathWeight,
    form: "a JSONPath such as '$.a[0]'",
    fallback: undefined,
    read: (value) => (typeof value === 'string' ? compilePath(value) : undefined),
  };
}

const expiryPatternLengthMax = 20;

export function expiryPattern(name: string): Argument<string> {
  return {
    name,
    form: `a pattern of MM, YY and YYYY, of at most ${expiryPatternLengthMax} characters`,
    fallback: undefined,
    read: (value) =>
      typeof value === 'string' && value.length <= expiryPatternLengthMax && saysExpiry(value)
        ? value
        : undefined,
  };
}
