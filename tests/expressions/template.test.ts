/** Masks: JSON whose strings are expressions. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { VaultError } from '../../src/base/errors.ts';
import { type Json, nestingMax } from '../../src/base/json.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import {
  compileTemplate,
  evaluateTemplate,
  expressionsMax,
} from '../../src/expressions/template.ts';
import * as generate from './generate.ts';

const card = { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 };

function evaluate(template: Json, data: Json): Json | undefined {
  return evaluateTemplate(compileTemplate(template, 'mask'), { data });
}

describe('a template', () => {
  it('is a JSON value whose strings are evaluated, in any depth', () => {
    const template = {
      number: '{{ data.number | reveal_last: 4 }}',
      expiry: ['{{ data.expiration_month }}', { year: '{{ data.expiration_year }}' }],
      text: 'card {{ data.number | last4 }}',
      kind: 'card',
      flag: true,
      count: 1,
      nothing: null,
    };
    assert.deepEqual(evaluate(template, card), {
      number: 'XXXXXXXXXXXX4242',
      expiry: [12, { year: 2030 }],
      text: 'card 4242',
      kind: 'card',
      flag: true,
      count: 1,
    });
  });

  it('says nothing of members the data lacks and keeps their places in lists', () => {
    const template = { a: '{{ data.nope }}', b: ['{{ data.nope }}', 1], c: { d: '{{ nope }}' } };
    assert.deepEqual(evaluate(template, card), { b: [null, 1], c: {} });
  });

  it('gives nothing when it is one expression without a value', () => {
    assert.equal(evaluate('{{ data.nope }}', card) ?? null, null);
  });

  it('makes a member called __proto__ and leaves the prototype alone', () => {
    const template = JSON.parse('{"__proto__": "{{ data.number }}"}') as Json;
    const result = evaluate(template, card) as object;
    assert.equal(JSON.stringify(result), '{"__proto__":"4242424242424242"}');
    assert.equal(Object.getPrototypeOf(result), Object.prototype);
  });

  it('fails as a whole when one expression fails', () => {
    const template = { a: '{{ data.number }}', b: '{{ data.number | to_boolean }}' };
    assert.throws(() => evaluate(template, card), ExpressionError);
  });

  it('gives JSON or a known error for any template and data', () => {
    const json = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { depthSize: 'small' },
        { weight: 3, arbitrary: generate.expression },
        fc.constantFrom(null, 1, true),
        fc.array(tie('json'), { maxLength: 3 }),
        fc.dictionary(fc.string({ maxLength: 3 }), tie('json'), { maxKeys: 3 }),
      ),
    })).json;
    const property = fc.property(json, generate.data, (template, data) => {
      try {
        JSON.stringify(evaluate(template, data));
      } catch (error) {
        assert.ok(error instanceof VaultError || error instanceof ExpressionError, String(error));
      }
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

describe('a template that is not one', () => {
  const errorsOf = (template: Json) => {
    try {
      compileTemplate(template, 'mask');
    } catch (error) {
      assert.ok(error instanceof VaultError);
      return Object.keys(error.errors ?? {});
    }
    return assert.fail('it compiled');
  };

  it('is refused by the path of the expression', () => {
    assert.deepEqual(errorsOf('{{ data'), ['mask']);
    assert.deepEqual(errorsOf({ number: '{{ data' }), ['mask.number']);
    assert.deepEqual(errorsOf({ list: [1, { inner: '{{ data' }] }), ['mask.list[1].inner']);
  });

  it('is refused without a name that may be data', () => {
    assert.deepEqual(errorsOf({ '4242424242424242': '{{ data' }), ['mask.*']);
    assert.deepEqual(errorsOf({ 'some words': '{{ data' }), ['mask.*']);
    assert.deepEqual(errorsOf({ ['n'.repeat(41)]: '{{ data' }), ['mask.*']);
    assert.deepEqual(errorsOf({ ['n'.repeat(40)]: '{{ data' }), [`mask.${'n'.repeat(40)}`]);
  });

  it('has at most the named number of expressions and levels', () => {
    const many = (count: number): Json => new Array<Json>(count).fill('{{ data }}');
    assert.equal((evaluate(many(expressionsMax), 1) as Json[]).length, expressionsMax);
    assert.deepEqual(errorsOf(many(expressionsMax + 1)), ['mask']);
    const nested = (levels: number): Json => (levels === 1 ? 1 : [nested(levels - 1)]);
    assert.doesNotThrow(() => compileTemplate(nested(nestingMax), 'mask'));
    assert.equal(errorsOf(nested(nestingMax + 1)).length, 1);
  });

  it('makes no more than some four million characters of copies', () => {
    const copies = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`copy${at}`, '{{ data }}']));
    const data = 'x'.repeat(500_000);
    assert.equal(Object.keys(evaluate(copies(7), data) ?? {}).length, 7);
    assert.throws(() => evaluate(copies(8), data), ExpressionError);
    assert.equal(evaluate('{{ data }}', 'x'.repeat(1_048_574))?.toString().length, 1_048_574);
  });

  it('pays for all its expressions from one budget', () => {
    const template = new Array<Json>(expressionsMax).fill('{{ data }}');
    assert.throws(() => evaluate(template, 'x'.repeat(100_000)), ExpressionError);
  });
});
