/** One expression: its type, its refusals, its limits, and that nothing else can come of it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Output, toValueSync } from 'liquidjs';
import { VaultError } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { engine, expressionLengthMax } from '../../src/expressions/engine.ts';
import { stepsMax, workMax } from '../../src/expressions/evaluation/budget.ts';
import { EvaluationContext } from '../../src/expressions/evaluation/context.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { newEvaluation } from '../../src/expressions/evaluation/evaluation.ts';
import { jsonOf } from '../../src/expressions/evaluation/result.ts';
import {
  compileExpression,
  evaluateExpression,
  guarded,
} from '../../src/expressions/expression.ts';
import { rangeMax } from '../../src/expressions/tags.ts';
import { casesOf } from '../support/random.ts';
import * as generate from './generate.ts';

const card = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

function evaluate(text: string, data: Json): Json | undefined {
  return evaluateExpression(compileExpression(text, 'mask'), { data });
}

describe('the type of a result', () => {
  const kept: readonly (readonly [string, Json])[] = [
    ['{{ data }}', card],
    ['  {{data}}\n', card],
    ['{{ data.expiration_month }}', 12],
    ["{{ data['number'] }}", card.number],
    ['{{ data.number.size }}', 16],
    ['{{ true }}', true],
    ['{{ (1..3) }}', [1, 2, 3]],
    ["{{ 'a,b' | split: ',' }}", ['a', 'b']],
  ];
  for (const [text, value] of kept) {
    it(`${JSON.stringify(text)} keeps its JSON type`, () => {
      assert.deepEqual(evaluate(text, card), value);
    });
  }

  const mixed: readonly (readonly [string, string])[] = [
    ['{{ data.expiration_month }}/{{ data.expiration_year }}', '12/2030'],
    ['{{ data.number }}|{{ data.cvc }}', '4242424242424242|123'],
    ['<{{ data.nope }}>', '<>'],
    ['{{ data }}.', `${JSON.stringify(card)}.`],
    ["{{ '1,2' | split: ',' }}.", '["1","2"].'],
    ['{{ 0.1 }}{{ 10.50 }}', '0.110.5'],
    ['{% if data.cvc %}yes{% else %}no{% endif %}', 'yes'],
    ['{% for digit in (1..3) %}{{ digit }}{% endfor %}', '123'],
    ['{% capture all %}{{ data }}{% endcapture %}{{ all }}', JSON.stringify(card)],
    ['{% raw %}{{ data }}{% endraw %}', '{{ data }}'],
    ['a {{- data.cvc -}} b', 'a123b'],
  ];
  for (const [text, value] of mixed) {
    it(`${JSON.stringify(text)} is text`, () => assert.equal(evaluate(text, card), value));
  }

  it('a text without expressions is itself', () => {
    for (const text of ['', 'plain', '100 %', '} {', '{ { data } }']) {
      assert.equal(evaluate(text, card), text);
      assert.equal(compileExpression(text).constant, true);
    }
  });

  it('a missing property gives nothing, also below what is missing', () => {
    for (const text of ['{{ data.nope }}', '{{ data.nope.deeper }}', '{{ nope }}']) {
      assert.equal(evaluate(text, card) ?? null, null);
    }
  });
});

describe('what is not an expression', () => {
  const refused: readonly (readonly [string, number, string])[] = [
    ['{{ data', 1, 'expected the end "}}" of this output'],
    ['a {{ data | nope }}', 3, 'expected a supported filter'],
    ['{{ }}', 4, 'expected a value or a filter'],
    ['{{ data.number reveal_last }}', 4, 'expected one value before the filters'],
    ['{{ data. }}', 9, 'expected a name or a value'],
    ['{{ data.[0] }}', 4, 'expected one value before the filters'],
    ['{{ data[] }}', 9, 'expected a name or a value'],
    ["{{ data['number' x] }}", 18, 'expected "|" and a filter, or the end'],
    ['{{ data | }}', 10, 'expected a name or a value'],
    ['{{ data | upcase: }}', 18, 'expected a name or a value'],
    ['{{ data | reveal: ,4 }}', 18, 'expected a name or a value'],
    ['{{ data | upcase, last4 }}', 17, 'expected "|" and a filter, or the end'],
    ['{{ data.number, nope: 4 }}', 15, 'expected "|" and a filter, or the end'],
    ['{{ == data }}', 4, 'expected a value on both sides'],
    ['{{ (1..data) }}', 4, `expected a range between whole numbers, of at most ${rangeMax}`],
    [
      '{{ (9007199254740992..9007199254740996) | size }}',
      4,
      `expected a range between whole numbers, of at most ${rangeMax}`,
    ],
    [
      '{% case 1 %}{% when 2, (0..9e9) %}{% endcase %}',
      24,
      `expected a range between whole numbers, of at most ${rangeMax}`,
    ],
    [
      '{% for a in (1..data[(0..99999)]) %}{% endfor %}',
      22,
      `expected a range between whole numbers, of at most ${rangeMax}`,
    ],
    [
      '{% for a in data limit: (0..99999) %}{% endfor %}',
      25,
      `expected a range between whole numbers, of at most ${rangeMax}`,
    ],
    ['{% assign x = data, last4 %}', 19, 'expected "|" and a filter, or the end'],
    ["{% include 'x' %}", 1, 'expected a supported tag'],
    ['{% if data %}', 1, 'expected the end of this tag'],
    ['{% raw %}', 1, 'expected the end of this tag'],
  ];
  for (const [text, at, expected] of refused) {
    it(`${JSON.stringify(text.slice(0, 50))} is refused at character ${at}`, () => {
      assert.throws(
        () => compileExpression(text, 'mask.number'),
        (error) => {
          assert.ok(error instanceof VaultError);
          assert.equal(error.code, 'validation_failed');
          const message = `is not a valid expression: at character ${at}, ${expected}`;
          assert.deepEqual(error.errors, { 'mask.number': [message] });
          return true;
        },
      );
    });
  }

  it('an expression has at most the named number of characters', () => {
    const filled = (length: number) => '{{ data }}'.padEnd(length);
    assert.doesNotThrow(() => compileExpression(filled(expressionLengthMax)));
    assert.throws(() => compileExpression(filled(expressionLengthMax + 1)), VaultError);
  });

  it('nesting deeper than the stack is refused like anything else', () => {
    for (const open of ['[', '(', 'a[', 'not ']) {
      const text = `{{ ${open.repeat(3900 / open.length)} }}`;
      assert.throws(() => compileExpression(text), VaultError);
    }
  });

  it('a comment may hold what is no expression', () => {
    assert.equal(evaluate('{% comment %}{{ data, x }}{% endcomment %}1', card), '1');
  });
});

describe('totality', () => {
  const check = (text: string, data: Json): void => {
    const scope = { data, metadata: { a: generate.sentinel } };
    try {
      const value = evaluateExpression(compileExpression(text, 'mask'), scope);
      assert.ok(isJson(value ?? null), 'the result is JSON');
    } catch (error) {
      const told = error instanceof VaultError ? error.errors?.['mask']?.join() : undefined;
      const message = error instanceof ExpressionError ? error.public : told;
      assert.ok(message !== undefined, `only the two known errors leave: ${error}`);
      assert.ok(!message.includes(generate.sentinel), 'a message repeats no data and no literal');
      assert.equal((error as Error).cause, undefined);
    }
  };

  it('a well-formed expression gives JSON or a known error on any data', () => {
    fc.assert(fc.property(generate.expression, generate.data, check), {
      numRuns: casesOf({ all: 4000, drawn: 1500 }),
    });
  });

  it('so does whatever a mutation makes of it', () => {
    fc.assert(fc.property(generate.mutated, generate.data, check), {
      numRuns: casesOf({ all: 4000, drawn: 1500 }),
    });
  });

  it('so does any text', () => {
    const text = fc.string({ unit: 'binary', maxLength: 40 }).map((some) => `{{${some}}}`);
    fc.assert(fc.property(text, generate.data, check), { numRuns: 1000 });
  });

  it('evaluation does not alter the data', () => {
    const property = fc.property(generate.expression, generate.data, (text, data) => {
      const before = JSON.stringify(data);
      check(text, data);
      assert.equal(JSON.stringify(data), before);
    });
    fc.assert(property, { numRuns: 1000 });
  });
});

describe('the direct way', () => {
  /** The same output, evaluated by liquidjs alone. */
  const byEngine = (text: string, data: Json): Json | undefined => {
    const [output] = engine.parse(text);
    assert.ok(output instanceof Output);
    const context = new EvaluationContext(engine, { data }, newEvaluation(counting()));
    return guarded(() => jsonOf(toValueSync(output.value.value(context))));
  };

  it('gives what liquidjs gives', () => {
    let compared = 0;
    const property = fc.property(generate.directExpression, generate.data, (text, data) => {
      const expression = outcomeOf(() => compileExpression(text));
      if ('error' in expression) return;
      compared += 1;
      const direct = outcomeOf(() =>
        evaluateExpression(expression.value, { data }, newEvaluation(counting())),
      );
      assert.deepEqual(
        direct,
        outcomeOf(() => byEngine(text, data)),
      );
    });
    const numRuns = casesOf({ all: 6000, drawn: 2000 });
    fc.assert(property, { numRuns });
    assert.ok(compared > numRuns / 6, `${compared} of the expressions compile`);
  });
});

describe('no expression reaches what is not data', () => {
  const hidden = [
    'data.constructor',
    'data.__proto__',
    'data.toString',
    "data['__proto__']['constructor']",
    'data.number.constructor',
    'data.list.map',
    'data.list.__proto__',
    'constructor',
    '__proto__',
    'nil.constructor',
    'empty.equals',
  ];
  for (const path of hidden) {
    it(`{{ ${path} }} is nothing`, () => {
      assert.equal(evaluate(`{{ ${path} }}`, { number: 'x', list: [1] }) ?? null, null);
      assert.equal(evaluate(`<{{ ${path} }}>`, { number: 'x', list: [1] }), '<>');
    });
  }

  it('a loop tells its place and lets nobody call its methods', () => {
    const each = (member: string) => `{% for one in (1..3) %}{{ forloop.${member} }},{% endfor %}`;
    assert.equal(evaluate(each('index'), null), '1,2,3,');
    for (const member of ['next', 'constructor', '__proto__.constructor', 'valueOf', 'i']) {
      assert.equal(evaluate(each(member), null), ',,,');
    }
  });

  it('a member that data calls __proto__ is a member', () => {
    const data = JSON.parse('{"__proto__": {"a": 1}}') as Json;
    assert.equal(evaluate('{{ data.__proto__.a }}', data), 1);
    assert.equal(evaluate("{{ data | json: '$.__proto__.a' }}", data), 1);
  });
});

describe('what an evaluation may cost', () => {
  const text = 'x'.repeat(1_000_000);
  const zeros = new Array(300_000).fill(0);
  const objects = Array.from({ length: 100_000 }, () => ({ a: 1 }));
  const wide = Object.fromEntries(Array.from({ length: 80_000 }, (_, index) => [`k${index}`, 1]));
  let deep: Json = {};
  for (let level = 0; level < 60; level += 1) deep = { a: deep };

  const work = `needs more than ${workMax} units of work`;
  const steps = `needs more than ${stepsMax} steps`;
  const range = `a range must begin and end with a whole number and have at most ${rangeMax} numbers`;
  const endless: readonly (readonly [
    what: string,
    expression: string,
    data: Json,
    limit: string,
  ])[] = [
    ['a long chain over a long text', chain('reveal'), text, work],
    ['sorting again and again', chain('sort'), zeros, work],
    ['filtering again and again', chain("where: 'a'"), objects, work],
    ['replacing each by many', chain("replace: 'x', 'xxxxxxxx'"), text, work],
    ['a list that doubles', doubling('concat'), [1], work],
    ['a text that doubles', doubling('append'), 'x', work],
    ['comparing lists', '{{ data == data }}'.repeat(200), zeros, work],
    ['counting members', '{{ data.size }}'.repeat(200), wide, work],
    ['loops in loops', loops(3), null, work],
    ['turns of a loop', '{% for a in (1..9999) %}{% endfor %}'.repeat(3), null, steps],
    [
      'listing an object in a loop',
      '{% for a in (1..9999) %}{% for b in data limit: 1 %}{% endfor %}{% endfor %}',
      wide,
      work,
    ],
    [
      'a case with many blanks',
      `{% case data %}${'{% when blank %}'.repeat(200)}{% endcase %}`,
      wide,
      work,
    ],
    ['many copies of a large value', '{{ data }}'.repeat(200), text, work],
    ['paths that descend', `{{ data | json: '$${'..*'.repeat(50)}.q' }}`, deep, work],
    ['paths that select twice', `{{ data | json: '$${'[*,*]'.repeat(60)}.q' }}`, deep, work],
    ['a wide date', "{{ 'now' | date: '%1000000000d' }}", null, work],
    [
      'a range where doubles are sparse',
      "{% for a in ('9007199254740992'..'9007199254740996') %}{% endfor %}",
      null,
      range,
    ],
    ['a range without end', '{% for a in (1..data) %}{% endfor %}', 'Infinity', range],
  ];
  for (const [what, expression, data, limit] of endless) {
    it(`${what} ends at a limit`, () => {
      assert.throws(() => evaluate(expression, data), { name: 'ExpressionError', public: limit });
    });
  }

  it('a megabyte of text can be masked, hashed and indexed', () => {
    assert.equal(String(evaluate('{{ data | reveal_last: 4 }}', text)).length, text.length);
    assert.equal(String(evaluate('{{ data | reveal: 1 }}', text)).length, text.length);
    assert.equal(evaluate('{{ data | stringify }}', zeros), JSON.stringify(zeros));
    assert.equal(evaluate("{{ data | json: '$.k79999' }}", wide), 1);
  });
});

function chain(filter: string): string {
  return `{{ data${` | ${filter}`.repeat(Math.floor(3900 / (filter.length + 3)))} }}`;
}

function doubling(filter: string): string {
  return `{% assign x = data %}${`{% assign x = x | ${filter}: x %}`.repeat(100)}{{ x }}`;
}

function loops(depth: number): string {
  return `${'{% for a in (1..9999) %}'.repeat(depth)}x${'{% endfor %}'.repeat(depth)}`;
}

/** A generator that both ways can draw the same from. */
function counting(): (length: number) => Buffer {
  let next = 0;
  return (length) => {
    const bytes = Buffer.alloc(length);
    for (let index = 0; index < length; index += 1) {
      next = (next * 31 + 7) % 256;
      bytes[index] = next;
    }
    return bytes;
  };
}

type Outcome<T> = { readonly value: T } | { readonly error: string };

function outcomeOf<T>(run: () => T): Outcome<T> {
  try {
    return { value: run() };
  } catch (error) {
    if (error instanceof ExpressionError) return { error: error.public };
    if (error instanceof VaultError) return { error: error.code };
    throw error;
  }
}

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value !== 'object') return false;
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isJson);
}
