/** The filters of the language that are ours: one row each. The standard ones are Liquid's. */
import { cardBin } from '../../base/checks.ts';
import type { Json } from '../../base/json.ts';
import { filterWork } from '../evaluation/budget.ts';
import { ExpressionError } from '../evaluation/error.ts';
import type { Evaluation } from '../evaluation/evaluation.ts';
import { isBeyondAscii } from '../evaluation/result.ts';
import { aliasCard, aliasPreservingFormat, aliasPreservingLength } from './alias.ts';
import {
  type Argument,
  type ArgumentValues,
  character,
  characters,
  expiryPattern,
  flag,
  jsonPath,
  length,
  oneOf,
  text,
} from './arguments.ts';
import * as convert from './convert.ts';
import { hmac, hmacAlgorithms } from './hmac.ts';
import { followPath } from './json-path.ts';
import { cardMask, last, reveal, revealLast, separatorsWith, withoutCharacters } from './mask.ts';

/** A filter with its arguments applied. */
export type AppliedFilter = (input: unknown, evaluation: Evaluation) => unknown;

export interface ExpressionFilter {
  readonly argumentsMax: number;
  /** In their order, for the reference. */
  readonly arguments: readonly Pick<Argument<unknown>, 'name' | 'form' | 'fallback'>[];
  /** How many times the length of an argument is charged when it is only known at the evaluation. */
  readonly argumentWeight: number;
  /** @throws ExpressionError naming the argument that is missing or of the wrong kind. */
  apply(given: readonly unknown[]): AppliedFilter;
}

/** How a filter reads what is piped into it, and how much it charges for that. */
interface FilterInput<T> {
  read(value: unknown, name: string, evaluation: Evaluation): T;
  /** Without it null passes the filter by. */
  readonly refusesNull?: true;
}

function filter<T, const Arguments extends readonly Argument<unknown>[]>(
  input: FilterInput<T>,
  expected: Arguments,
  compute: (input: T, given: ArgumentValues<Arguments>, evaluation: Evaluation) => unknown,
) {
  return (name: string): ExpressionFilter => ({
    argumentsMax: expected.length,
    arguments: expected,
    argumentWeight: Math.max(1, ...expected.map(({ weight = 1 }) => weight)),
    apply(given) {
      const values = valuesOf(name, expected, given) as ArgumentValues<Arguments>;
      return (value, evaluation) => {
        evaluation.budget.use(filterWork);
        const absent = value === null || value === undefined;
        if (absent && input.refusesNull === undefined) return null;
        return compute(input.read(value, name, evaluation), values, evaluation);
      };
    },
  });
}

const anything: FilterInput<unknown> = { read: (value) => value };

const counted: FilterInput<Json> = {
  read(value, _name, { budget }) {
    budget.useFor(value);
    return value as Json;
  },
};

/** Text of which each character costs so many units of work, by measurement. */
function textOf(weight: number, beyondAsciiWeight = weight): FilterInput<string> {
  return {
    read(value, name, { budget }) {
      const text = typeof value === 'number' ? String(value) : value;
      if (typeof text !== 'string') throw new ExpressionError(`${name} needs text`);
      budget.use(text.length * (isBeyondAscii(text) ? beyondAsciiWeight : weight));
      return text;
    },
  };
}

const string = textOf(1);
const padded = textOf(4);
const hashed = textOf(4);
const spelled = textOf(10, 16);
/** Looking up a character beyond ASCII among those that are kept. */
const preservedWork = 16;
/** Filters that read a number more than once. */
const masked = textOf(24, 60);
const maskedWork = 1600;
const drawn = textOf(150, 220);
/** Also searches for digits that fail the Luhn check. */
const drawnCard = textOf(250);
const drawnCardWork = 4000;

/** Filters that only use numbers, booleans, and short strings. */
const scalar: FilterInput<unknown> = {
  read(value, _name, { budget }) {
    if (typeof value === 'string') budget.use(value.length * 8);
    return value;
  },
};

const bytes: FilterInput<Buffer> = {
  read: (value, name) => convert.bytesOf(value, name),
  refusesNull: true,
};

/** The setup of a digest costs more than a typical input. */
const hmacWork = 6000;

const first = length('first', 0);
const lastCount = length('last', 0);
const maskCharacter = character('mask_char', 'X');
const revealBin = flag('reveal_bin', false);
const revealLast4 = flag('reveal_last4', false);

const jsonStringify = filter(counted, [], (value) => convert.toJsonText(value));

const rows = {
  alias_card: filter(
    drawnCard,
    [revealBin, revealLast4],
    (number, [bin, last4], { budget, random }) => {
      budget.use(drawnCardWork);
      return aliasCard(number, { bin, last4 }, random);
    },
  ),
  alias_preserve_format: filter(drawn, [first, lastCount], (value, [first, last], { random }) =>
    aliasPreservingFormat(value, { first, last }, random),
  ),
  alias_preserve_length: filter(drawn, [first, lastCount], (value, [first, last], { random }) =>
    aliasPreservingLength(value, { first, last }, random),
  ),
  card_bin: filter(masked, [characters('separator_char', '')], (number, [separator]) =>
    binOf(number, separator),
  ),
  card_exp: filter(anything, [expiryPattern('format')], (card, [pattern]) =>
    convert.cardExpiry(card, pattern),
  ),
  card_mask: filter(
    masked,
    [revealBin, revealLast4, maskCharacter, characters('preserve_char', '')],
    (number, [bin, last4, mask, preserved], { budget }) => {
      budget.use(maskedWork);
      return cardMask(number, { bin, last4, mask, preserved });
    },
  ),
  hmac: filter(
    hashed,
    [oneOf('algorithm', Object.keys(hmacAlgorithms), 'sha-256'), text('key', 4)],
    (value, [algorithm, key], { budget }) => {
      budget.use(hmacWork);
      return hmac(value, algorithm, key);
    },
  ),
  json: filter(anything, [jsonPath('path')], (value, [path], { budget }) =>
    followPath(path, value as Json, budget),
  ),
  json_stringify: jsonStringify,
  last4: filter(string, [], (value) => last(value, 4)),
  pad_left: filter(
    padded,
    [length('length'), character('pad_char')],
    (value, [length, pad]) => convert.padding(value, length, pad) + value,
  ),
  pad_right: filter(
    padded,
    [length('length'), character('pad_char')],
    (value, [length, pad]) => value + convert.padding(value, length, pad),
  ),
  reveal: filter(
    spelled,
    [first, lastCount, maskCharacter, characters('preserve_chars', '')],
    (value, [first, last, mask, preserved], { budget }) => {
      if (preserved !== '' && isBeyondAscii(value)) budget.use(value.length * preservedWork);
      return reveal(value, { first, last, mask, preserved });
    },
  ),
  reveal_last: filter(spelled, [length('length'), maskCharacter], (value, [length, mask]) =>
    revealLast(value, length, mask),
  ),
  stringify: jsonStringify,
  to_base16: filter(bytes, [], (octets) => octets.toString('hex').toUpperCase()),
  to_base64: filter(bytes, [], (octets) => octets.toString('base64')),
  to_boolean: filter(scalar, [], (value) => convert.toBoolean(value)),
  to_number: filter(scalar, [], (value) => convert.toNumber(value)),
  to_string: filter(scalar, [], (value) => convert.toText(value)),
};

/** The vault's own filters by name. */
export const filters: ReadonlyMap<string, ExpressionFilter> = new Map(
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

/** Shorter numbers are rejected: the issuer's digits would be most of a short number. */
function binOf(text: string, separator: string): string {
  const number = withoutCharacters(text, separatorsWith(separator));
  if (!/^[0-9]{12,19}$/.test(number)) throw new ExpressionError('card_bin needs a card number');
  return cardBin(number);
}
