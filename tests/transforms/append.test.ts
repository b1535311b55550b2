/** Appending to responses: the value is at its location, and nothing else has changed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Budget } from '../../src/expressions/evaluation/budget.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { compilePath, followPath, singularSteps } from '../../src/expressions/filters/json-path.ts';
import type { Json } from '../../src/lib/json.ts';
import { appendJson, isHeaderName } from '../../src/transforms/append.ts';

const append = (json: Json, location: string, value: Json) => {
  const steps = singularSteps(location);
  assert.ok(steps, location);
  return appendJson(json, steps, value);
};

describe('append_json', () => {
  const expected: readonly (readonly [Json, string, Json, Json])[] = [
    [{}, '$.a', 1, { a: 1 }],
    [{ a: 1, b: 2 }, '$.a', null, { a: null, b: 2 }],
    [{}, '$.a.b[0].c', 'x', { a: { b: [{ c: 'x' }] } }],
    [{ a: [1, 2] }, '$.a[2]', 3, { a: [1, 2, 3] }],
    [{ a: [1, 2] }, '$.a[-1]', 3, { a: [1, 3] }],
    [[{}], "$[0]['x y']", true, [{ 'x y': true }]],
    [{}, "$['\\u00e9']", 1, { é: 1 }],
    [{ a: { b: 1 } }, '$.a', { c: [] }, { a: { c: [] } }],
  ];
  for (const [json, location, value, result] of expected) {
    it(`${location} of ${JSON.stringify(json)} gives ${JSON.stringify(result)}`, () => {
      const before = JSON.stringify(json);
      assert.deepEqual(append(json, location, value), result);
      assert.equal(JSON.stringify(json), before);
    });
  }

  it('adds a member of any name, and alters no prototype', () => {
    const result = append({ a: 1 }, '$.__proto__.x', 2);
    assert.equal(JSON.stringify(result), '{"a":1,"__proto__":{"x":2}}');
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
    assert.equal(JSON.stringify(append({}, '$.constructor.y', 1)), '{"constructor":{"y":1}}');
  });

  const unfit: readonly (readonly [Json, string])[] = [
    [{ a: 'text' }, '$.a.b'],
    [{ a: null }, '$.a.b'],
    [{ a: {} }, '$.a[0]'],
    [{ a: [] }, '$.a.b'],
    [{ a: [] }, '$.a[1]'],
    [{ a: [1] }, '$.a[-2]'],
    [{}, '$.a[-1]'],
    ['text', '$.a'],
  ];
  for (const [json, location] of unfit) {
    it(`${location} does not fit ${JSON.stringify(json)}`, () => {
      assert.throws(() => append(json, location, 1), ExpressionError);
    });
  }

  it('what is appended is found there by JSONPath', () => {
    const name = fc.constantFrom('a', 'b', '__proto__', 'x y', "it's", '😀');
    const step = fc.oneof(name, fc.constant(0));
    const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(
        json,
        fc.array(step, { minLength: 1, maxLength: 4 }),
        json,
        (body, steps, value) => {
          const path = `$${steps.map((one) => `[${JSON.stringify(one)}]`).join('')}`;
          try {
            const result = append(body, path, value);
            assert.deepEqual(followPath(compilePath(path), result, new Budget()), value);
          } catch (error) {
            assert.ok(error instanceof ExpressionError, String(error));
          }
        },
      ),
    );
  });
});

describe('a location of append_json leads to one place', () => {
  it('of names and indexes', () => {
    assert.deepEqual(singularSteps("$.a['b c'][0][-1]"), ['a', 'b c', 0, -1]);
    assert.deepEqual(singularSteps('$'), []);
    assert.equal(singularSteps(`$${'.a'.repeat(64)}`)?.length, 64);
  });

  for (const path of [
    '',
    'a',
    '$.*',
    '$..a',
    '$[0:1]',
    "$['a','b']",
    '$[?@.a]',
    '$.a.',
    `$${'.a'.repeat(65)}`,
  ]) {
    it(`which ${path.slice(0, 20)} does not`, () => assert.equal(singularSteps(path), undefined));
  }
});

describe('a header', () => {
  it('has a name of the characters of RFC 9110, and does not frame the message', () => {
    for (const name of ['X-A', 'x_a', '!#$%', 'a'.repeat(100)]) assert.ok(isHeaderName(name), name);
    const refused = [
      '',
      'a b',
      'a:',
      'é',
      'a\n',
      'Content-Length',
      'transfer-encoding',
      'a'.repeat(101),
    ];
    for (const name of refused) assert.ok(!isHeaderName(name), name);
  });
});
