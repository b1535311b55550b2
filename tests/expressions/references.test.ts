/** Bodies of detokenize: JSON whose strings name tokens. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import { tokenIdLengthMax } from '../../src/base/ids.ts';
import type { Json } from '../../src/base/json.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import {
  evaluateReferences,
  expressionsMax,
  type ReferenceTemplate,
  readReferences,
} from '../../src/expressions/references.ts';
import { casesOf } from '../support/random.ts';
import { mutated } from './generate.ts';

const card = { number: '4242424242424242', expiration_month: 12 };
const values: Readonly<Record<string, Json>> = {
  'data card': card,
  'token card': { id: 'card', type: 'card', data: card },
  'token_intent card': { id: 'card', data: card },
  "data o'brien @ home: a.b-c": 'O’Brien',
  'data ssn': '123-45-6789',
};

function compileReferences(body: Json): ReferenceTemplate {
  const { template, uncompiled } = readReferences(body);
  for (const compile of uncompiled) compile();
  return template;
}

function evaluate(body: Json): Json {
  const template = compileReferences(body);
  const ofReferences = template.references.map(({ kind, id }) => values[`${kind} ${id}`] ?? null);
  return evaluateReferences(template, ofReferences);
}

describe('a reference', () => {
  const expected: readonly (readonly [string, Json])[] = [
    ['{{ card }}', card],
    ['{{card}}', card],
    [' {{ card }} ', card],
    ["{{ card | json: '$.number' }}", card.number],
    ["{{card|json:'$.expiration_month'}}", 12],
    ['{{ token: card }}', { id: 'card', type: 'card', data: card }],
    ["{{token:card | json: '$.data.number'}}", card.number],
    ["{{ token_intent: card | json: '$.data.number' | last4 }}", '4242'],
    ["{{ o'brien @ home: a.b-c }}", 'O’Brien'],
    ["{{ o'brien @ home: a.b-c | upcase }}", 'O’BRIEN'],
    ["{{ ssn | remove: '-' }}", '123456789'],
    ["{{ ssn | append: '}}' | append: \"|'{{\" }}", "123-45-6789}}|'{{"],
    ['{{ ssn }}, {{ ssn | last4 }}', '123-45-6789, 6789'],
    ['card {{ card }}', `card ${JSON.stringify(card)}`],
    ["<{{ card | json: '$.nope' }}>", '<>'],
    ["{{ card | json: '$.nope' }}", null],
    ['{{ unresolved }}', null],
    ['{% raw %}{{ card }}{% endraw %}', '{{ card }}'],
    ['{%- raw -%}{{{% endraw %} {{ ssn }}', '{{ 123-45-6789'],
    ['50{% off {{ ssn | last4 }} %}', '50{% off 6789 %}'],
  ];
  for (const [text, value] of expected) {
    it(`${JSON.stringify(text)} gives ${JSON.stringify(value)}`, () => {
      assert.deepEqual(evaluate(text), value);
    });
  }

  it('is found in any depth, and everything else stays as it is', () => {
    const body = { '{{ card }}': [{ a: '{{ ssn }}' }, null, 1, true, 'plain', '{% if %}'], b: {} };
    assert.deepEqual(evaluate(body), {
      '{{ card }}': [{ a: '123-45-6789' }, null, 1, true, 'plain', '{% if %}'],
      b: {},
    });
    assert.deepEqual(evaluate({ a: "{{ card | json: '$.nope' }}" }), { a: null });
  });

  it('is listed once and counted each time', () => {
    const { references, expressionCount } = compileReferences([
      '{{ card }}{{ card | last4 }}',
      { a: '{{ token: card }}', b: '{{ token_intent:card }}', c: '{{ ssn }}' },
    ]);
    assert.deepEqual(references, [
      { kind: 'data', id: 'card' },
      { kind: 'token', id: 'card' },
      { kind: 'token_intent', id: 'card' },
      { kind: 'data', id: 'ssn' },
    ]);
    assert.equal(expressionCount, 5);
  });

  it('has one value, however often it is named, and one of another kind has its own', () => {
    const template = compileReferences(['{{ ssn }}', '{{ token: ssn }}', '{{ ssn | last4 }}']);
    assert.equal(template.references.length, 2);
    assert.deepEqual(evaluateReferences(template, ['a1234', 'whole']), ['a1234', 'whole', '1234']);
  });

  it('cannot reach the value of another reference', () => {
    assert.deepEqual(evaluate(['{{ card }}', '{{ ssn | append: card }}']), [card, '123-45-6789']);
  });

  it('fails on data its filters refuse', () => {
    assert.throws(() => evaluate('{{ card | last4 }}'), ExpressionError);
    assert.throws(() => evaluate("{{ card | json: '$.*' }}"), ExpressionError);
  });
});

describe('a body that is refused', () => {
  const errorsOf = (body: Json) => {
    try {
      compileReferences(body);
    } catch (error) {
      assert.ok(error instanceof VaultError);
      return error.errors;
    }
    return assert.fail('it compiled');
  };
  const refused: readonly (readonly [string, number, string])[] = [
    ['{{ }}', 3, 'expected the id of a token'],
    ['a {{ | last4 }}', 5, 'expected the id of a token'],
    [`{{ ${'i'.repeat(tokenIdLengthMax + 1)} }}`, 3, 'expected the id of a token'],
    ['{{ card', 3, 'expected "}}" after this'],
    ["{{ card | append: '}} ", 3, 'expected "}}" after this'],
    ['{% raw %}{{ card }}', 10, 'expected "{% endraw %}" after this'],
    ['{{ card | nope }}', 1, 'expected a supported filter'],
    ['ab {{ card | }}', 13, 'expected a name or a value'],
    [
      'ab {{ card | reveal_last }}',
      14,
      'reveal_last: "length" must be a whole number from 0 to 10000',
    ],
  ];
  for (const [text, at, expected] of refused) {
    it(`${JSON.stringify(text.slice(0, 40))} is refused at character ${at}`, () => {
      const message = `is not a valid expression: at character ${at}, ${expected}`;
      assert.deepEqual(errorsOf({ a: [text] }), { 'a[0]': [message] });
    });
  }

  it('has more than the named number of expressions', () => {
    const many = (count: number) => new Array<Json>(count).fill('{{ ssn }}');
    assert.equal(compileReferences(many(expressionsMax)).expressionCount, expressionsMax);
    assert.ok(errorsOf(many(expressionsMax + 1)));
  });
});

describe('totality of references', () => {
  it('any text with any value gives JSON or a known error', () => {
    const text = fc.oneof(
      mutated,
      fc
        .array(fc.constantFrom('{{', '}}', '{%', '%}', ' raw ', ' endraw ', '|', "'", 'a', ' '))
        .map((parts) => parts.join('')),
    );
    const property = fc.property(text, fc.jsonValue({ maxDepth: 3 }), (body, value) => {
      try {
        const template = compileReferences([body]);
        assert.ok(template.expressionCount >= template.references.length);
        const ofReferences = template.references.map(() => value as Json);
        JSON.stringify(evaluateReferences(template, ofReferences));
      } catch (error) {
        assert.ok(error instanceof VaultError || error instanceof ExpressionError, String(error));
      }
    });
    fc.assert(property, { numRuns: casesOf({ all: 3000, drawn: 1000 }) });
  });
});
