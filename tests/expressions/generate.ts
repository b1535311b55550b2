/** Random expressions and data for the properties; fast-check prints the seed of a failure. */
import fc from 'fast-check';
import type { Json } from '../../src/base/json.ts';
import { filters } from '../../src/expressions/filters/filters.ts';
import { boundedFilters } from '../../src/expressions/filters/standard-filters.ts';

/** Stands for what no message may repeat, in data as in the literals of an expression. */
export const sentinel = 'S3NT1NEL';

const names = ['data', 'number', 'expiration_month', 'a', 'b', 'list', 'size', 'first', 'last'];
const hostileNames = ['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty'];
const name = fc.constantFrom(...names, ...hostileNames, 'metadata', 'forloop', 'x');

const path = fc
  .tuple(
    fc.constantFrom('data', 'metadata', 'x', 'forloop'),
    fc.array(
      fc.oneof(
        name.map((one) => `.${one}`),
        fc.integer({ min: -3, max: 3 }).map((index) => `[${index}]`),
        name.map((one) => `['${one}']`),
        name.map((one) => `[data.${one}]`),
      ),
      { maxLength: 4 },
    ),
  )
  .map(([root, steps]) => root + steps.join(''));

const literal = fc.oneof(
  fc.integer({ min: -5, max: 20 }).map(String),
  fc.constantFrom('1.5', 'true', 'false', 'nil', 'empty', 'blank', "''", "'X'", "'-'", "'#'"),
  fc.constantFrom("'true'", "'false'", "'sha-256'", "'MM/YY'", `'${sentinel}'`, "'9e15'"),
  fc.constantFrom("'$.a'", "'$..a'", "'$[?@.a == 1]'", "'$[*,*]'", "'$.list[0]'", "'$[1:]'"),
  fc.constantFrom('(1..3)', '(0..data.a)', "('a'..'b')", '(9007199254740990..9007199254740991)'),
);

const argument = fc.oneof({ weight: 4, arbitrary: literal }, path);

const filterName = fc.constantFrom(...filters.keys(), ...boundedFilters.keys(), 'nope');

const filter = fc
  .tuple(filterName, fc.array(argument, { maxLength: 4 }))
  .map(([filter, given]) => (given.length > 0 ? `${filter}: ${given.join(', ')}` : filter));

const operator = fc.constantFrom('==', '!=', '<', '<=', '>', '>=', 'contains', 'and', 'or');

const operand = fc.oneof({ weight: 4, arbitrary: path }, literal);

const value = fc
  .tuple(operand, fc.array(fc.tuple(operator, operand), { maxLength: 2 }))
  .map(([first, others]) => [first, ...others.map((pair) => pair.join(' '))].join(' '));

const filtered = fc
  .tuple(value, fc.array(filter, { maxLength: 4 }))
  .map(([first, others]) => [first, ...others].join(' | '));

const output = fc
  .tuple(fc.constantFrom('{{', '{{-', '{{ '), filtered, fc.constantFrom('}}', '-}}', ' }}'))
  .map((parts) => parts.join(' '));

const words = fc.constantFrom('', ' ', 'x', '|', '€', '😀', 'a-b');

const { text } = fc.letrec<{ text: string; piece: string; tag: string }>((tie) => ({
  text: fc.array(tie('piece'), { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join('')),
  piece: fc.oneof({ depthSize: 'small' }, { weight: 4, arbitrary: output }, words, tie('tag')),
  tag: fc.oneof(
    fc
      .tuple(value, tie('text'), tie('text'))
      .map(([test, then, other]) => `{% if ${test} %}${then}{% else %}${other}{% endif %}`),
    fc
      .tuple(value, tie('text'))
      .map(([test, then]) => `{% unless ${test} %}${then}{% endunless %}`),
    fc
      .tuple(path, literal, tie('text'))
      .map(([of, when, then]) => `{% case ${of} %}{% when ${when} %}${then}{% endcase %}`),
    fc
      .tuple(fc.oneof(path, literal), tie('text'), fc.constantFrom('', ' limit: 2', ' reversed'))
      .map(([list, body, how]) => `{% for x in ${list}${how} %}${body}{% break %}{% endfor %}`),
    filtered.map((one) => `{% assign x = ${one} %}{{ x }}`),
    tie('text').map((one) => `{% capture x %}${one}{% endcapture %}{{ x }}`),
    tie('text').map((one) => `{% raw %}${one}{% endraw %}`),
    tie('text').map((one) => `{% comment %}${one}{% endcomment %}`),
    fc.constantFrom("{% include 'a' %}", "{% render 'a' %}", "{% layout 'a' %}", '{% liquid %}'),
  ),
}));

/** Text of the language, mostly well formed and often nonsense. */
export const expression: fc.Arbitrary<string> = text;

/** An output of a path and our filters with literal arguments, which the direct way takes. */
export const directExpression: fc.Arbitrary<string> = fc
  .tuple(
    path,
    fc.array(
      fc
        .tuple(fc.constantFrom(...filters.keys()), fc.array(literal, { maxLength: 3 }))
        .map(([one, given]) => (given.length > 0 ? `${one}: ${given.join(', ')}` : one)),
      { maxLength: 3 },
    ),
  )
  .map(([root, chain]) => `{{ ${[root, ...chain].join(' | ')} }}`);

/** The expression with some of its characters replaced, left out or doubled. */
export const mutated: fc.Arbitrary<string> = fc
  .tuple(
    expression,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.oneof(
          fc.string({ unit: 'binary', maxLength: 2 }),
          fc.constantFrom(...'{}%|:,.[]()\'" -\\\u0000'),
        ),
      ),
      { minLength: 1, maxLength: 4 },
    ),
  )
  .map(([original, changes]) =>
    changes.reduce((changed, [place, piece]) => {
      const at = place % (changed.length + 1);
      return changed.slice(0, at) + piece + changed.slice(at + (place % 3));
    }, original),
  );

const scalar = fc.oneof(
  fc.constantFrom(sentinel, `4242424242424242`, '4242-4242-4242-4242', '123-45-6789', 'true', ''),
  fc.constantFrom(null, true, false, 0, -1, 1.5, 12, 2030, 1e21, 9007199254740991),
  fc.string({ unit: 'grapheme', maxLength: 6 }).map((some) => some + sentinel),
);

/** JSON whose members often have the names that expressions use, and names that objects have. */
export const data: fc.Arbitrary<Json> = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'medium' },
    { weight: 3, arbitrary: scalar },
    fc.array(tie('json'), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.oneof(name, fc.string({ maxLength: 3 })), tie('json')), { maxLength: 5 })
      .map((members) => Object.fromEntries(members) as Json),
  ),
})).json;
