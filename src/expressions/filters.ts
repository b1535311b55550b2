/** The filters of the language that are ours: one row each. The standard ones are Liquid's. */
import { cardBin } from '../lib/checks.ts';
import type { Json } from '../lib/json.ts';
import { aliasCard, aliasPreservingFormat, aliasPreservingLength } from './alias.ts';
import {
  type Argument,
  character,
  characters,
  expiryPattern,
  flag,
  jsonPath,
  length,
  oneOf,
  text,
  type Values,
} from './arguments.ts';
import type { Evaluation } from './budget.ts';
import * as convert from './convert.ts';
import { ExpressionError } from './error.ts';
import { followPath } from './json-path.ts';
import { cardMask, cardSeparators, last, reveal, revealLast } from './mask.ts';

/** A filter with its arguments applied. */
export type Applied = (input: unknown, evaluation: Evaluation) => unknown;

export interface Filter {
  readonly argumentsMax: number;
  /** @throws ExpressionError naming the argument that is missing or of the wrong kind. */
  apply(given: readonly unknown[]): Applied;
}

type Input<T> = (value: unknown, name: string, evaluation: Evaluation) => T;

function filter<T, const Arguments extends readonly Argument<unknown>[]>(
  input: Input<T>,
  expected: Arguments,
  compute: (input: T, given: Values<Arguments>, evaluation: Evaluation) => unknown,
) {
  return (name: string): Filter => ({
    argumentsMax: expected.length,
    apply(given) {
      const values = valuesOf(name, expected, given) as Values<Arguments>;
      return (value, evaluation) => {
        // Null goes through every filter but those that must not lose it in silence, see `bytes`.
        if ((value === null || value === undefined) && input !== (bytes as Input<unknown>)) {
          return null;
        }
        return compute(input(value, name, evaluation), values, evaluation);
      };
    },
  });
}

const anything: Input<unknown> = (value) => value;

const counted: Input<Json> = (value, _name, { budget }) => {
  budget.useFor(value);
  return value as Json;
};

const string: Input<string> = (value, name, { budget }) => {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string') throw new ExpressionError(`${name} needs text`);
  budget.use(text.length);
  return text;
};

const cardNumber: Input<string> = (value, name, evaluation) => string(value, name, evaluation);

const bytes: Input<Buffer> = (value, name) => convert.bytesOf(value, name);

const first = length('first', 0);
const lastCount = length('last', 0);
const maskCharacter = character('mask_char', 'X');
const revealBin = flag('reveal_bin', false);
const revealLast4 = flag('reveal_last4', false);

const jsonStringify = filter(counted, [], (value) => convert.toJsonText(value));

const rows = {
  alias_card: filter(string, [revealBin, revealLast4], (number, [bin, last4], { random }) =>
    aliasCard(number, { bin, last4 }, random),
  ),
  alias_preserve_format: filter(string, [first, lastCount], (value, [first, last], { random }) =>
    aliasPreservingFormat(value, { first, last }, random),
  ),
  alias_preserve_length: filter(string, [first, lastCount], (value, [first, last], { random }) =>
    aliasPreservingLength(value, { first, last }, random),
  ),
  card_bin: filter(cardNumber, [characters('separator_char', '')], (number, [separator]) =>
    binOf(number, separator),
  ),
  card_exp: filter(anything, [expiryPattern('format')], (card, [pattern]) =>
    convert.cardExpiry(card, pattern),
  ),
  card_mask: filter(
    string,
    [revealBin, revealLast4, maskCharacter, characters('preserve_char', '')],
    (number, [bin, last4, mask, preserved]) => cardMask(number, { bin, last4, mask, preserved }),
  ),
  hmac: filter(
    string,
    [oneOf('algorithm', Object.keys(convert.hmacAlgorithms), 'sha-256'), text('key')],
    (value, [algorithm, key]) => convert.hmac(value, algorithm, key),
  ),
  json: filter(anything, [jsonPath('path')], (value, [path], { budget }) =>
    followPath(path, value as Json, budget),
  ),
  json_stringify: jsonStringify,
  last4: filter(string, [], (value) => last(value, 4)),
  pad_left: filter(
    string,
    [length('length'), character('pad_char')],
    (value, [length, pad]) => convert.padding(value, length, pad) + value,
  ),
  pad_right: filter(
    string,
    [length('length'), character('pad_char')],
    (value, [length, pad]) => value + convert.padding(value, length, pad),
  ),
  reveal: filter(
    string,
    [first, lastCount, maskCharacter, characters('preserve_chars', '')],
    (value, [first, last, mask, preserved]) => reveal(value, { first, last, mask, preserved }),
  ),
  reveal_last: filter(string, [length('length'), maskCharacter], (value, [length, mask]) =>
    revealLast(value, length, mask),
  ),
  stringify: jsonStringify,
  to_base16: filter(bytes, [], (octets) => octets.toString('hex').toUpperCase()),
  to_base64: filter(bytes, [], (octets) => octets.toString('base64')),
  to_boolean: filter(anything, [], (value) => convert.toBoolean(value)),
  to_number: filter(anything, [], (value) => convert.toNumber(value)),
  to_string: filter(anything, [], (value) => convert.toText(value)),
};

/** Our filters by name. */
export const filters: ReadonlyMap<string, Filter> = new Map(
  Object.entries(rows).map(([name, make]) => [name, make(name)]),
);

function valuesOf(
  name: string,
  expected: readonly Argument<unknown>[],
  given: readonly unknown[],
): unknown[] {
  if (given.length > expected.length) {
    throw new ExpressionError(`${name} takes at most ${expected.length} arguments`);
  }
  return expected.map((argument, index) => {
    const value = given[index];
    const read = value === undefined || value === null ? argument.fallback : argument.read(value);
    if (read !== undefined) return read;
    throw new ExpressionError(`${name}: "${argument.name}" must be ${argument.form}`);
  });
}

/** Shorter numbers are refused: the issuer's digits of a short number would be most of it. */
function binOf(text: string, separator: string): string {
  const separators = cardSeparators + separator;
  const number = [...text].filter((character) => !separators.includes(character)).join('');
  if (!/^[0-9]{12,19}$/.test(number)) throw new ExpressionError('card_bin needs a card number');
  return cardBin(number);
}
