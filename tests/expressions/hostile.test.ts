/** Expressions that would hold the process: each is refused by what it may cost, before it is run. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Budget, workMax } from '../../src/expressions/evaluation/budget.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { newEvaluation } from '../../src/expressions/evaluation/evaluation.ts';
import { compileExpression, evaluateExpression } from '../../src/expressions/expression.ts';
import type { Json } from '../../src/lib/json.ts';

const work = `needs more than ${workMax} units of work`;
const text = 'a'.repeat(300_000);
const pattern = `b${'a'.repeat(150_000)}`;
const many = (piece: string, count: number) => piece.repeat(count);
const loop = (inner: string) => `{% for i in (1..9999) %}${inner}{% endfor %}`;

function evaluate(expression: string, scope: Record<string, Json>, budget = new Budget()) {
  const evaluation = { ...newEvaluation(), budget };
  return evaluateExpression(compileExpression(expression), scope, evaluation);
}

class CountedBudget extends Budget {
  spent = 0;

  override use(amount: number): void {
    if (Number(amount) > 0) this.spent += Number(amount);
    super.use(amount);
  }
}

function costOf(expression: string, data: Json): number {
  const budget = new CountedBudget();
  evaluate(expression, { data }, budget);
  return budget.spent;
}

describe('what searches is paid for by the text times the pattern', () => {
  const searches = [
    'remove: p',
    'remove_first: p',
    'remove_last: p',
    "replace: p, 'x'",
    "replace_first: p, 'x'",
    "replace_last: p, 'x'",
    'split: p',
  ];
  for (const filter of searches) {
    it(`${filter.split(':')[0]} is refused where it may take long`, () => {
      const scope = { data: text, p: pattern };
      const refused = { name: 'ExpressionError', public: work };
      assert.throws(() => evaluate(`{{ data | ${filter} }}`, scope), refused);
    });
  }

  it('contains is refused where it may take long', () => {
    const refused = { name: 'ExpressionError', public: work };
    const expression = '{% if data contains p %}{% endif %}';
    assert.throws(() => evaluate(expression, { data: text, p: pattern }), refused);
  });

  it('a pattern as long as those of people is found in a megabyte of text', () => {
    const data = `${'x'.repeat(999_000)}needle`;
    const scope = { data };
    assert.equal(evaluate("{{ data | remove: 'needle' | size }}", scope), 999_000);
    assert.equal(evaluate("{{ data | replace_last: 'needle', '' | size }}", scope), 999_000);
    assert.equal(evaluate("{{ data | split: 'needle' | size }}", scope), 1);
    assert.equal(evaluate("{% if data contains 'needle' %}1{% endif %}", scope), '1');
  });
});

describe('what looks cheap and is not is paid for', () => {
  const numbers = Array.from({ length: 1000 }, (_, at) => Math.sqrt(at + 2));
  const endless: readonly (readonly [what: string, expression: string, data: Json])[] = [
    ['operators without end', loop(`{% assign x = 1${many(' == 1', 700)} %}`), null],
    ['and, or, not', loop(`{% assign x = ${many('not ', 900)}1 %}`), null],
    ['members without end', loop(`{% assign x = data${many('.a', 1800)} %}`), null],
    ['filters on numbers', loop(`{% assign x = 1${many(' | plus: 1', 300)} %}`), null],
    ['cases', loop(`{% case 1 %}{% when 2${many(',2', 1800)} %}{% endcase %}`), null],
    ['names of days', loop(`{% assign x = 0 | date: '${many('%A', 90)}' %}`), null],
    ['zones', loop("{% assign x = 0 | date: '%H', 'Europe/Berlin' %}"), null],
    ['digests', loop("{% assign x = 'x' | hmac: 'sha-256', 'k' %}"), null],
    ['digests under a long key', loop("{% assign x = 'x' | hmac: 'sha-256', data %}"), text],
    ['decimals as text', loop("{% assign x = data | join: ',' %}"), numbers],
    ['decimals as JSON', loop('{% assign x = data | stringify %}'), numbers],
    ['a text that is no boolean', loop('{% assign x = data | to_string %}'), text],
    [
      'a path for each turn',
      loop(
        `{% assign p = "$${many('[?@.a]', 90)}[?@.b" | append: i | append: "]" %}{% assign y = 1 | json: p %}`,
      ),
      null,
    ],
  ];
  for (const [what, expression, data] of endless) {
    it(`${what} end at a limit`, () => {
      assert.throws(() => evaluate(expression, { data }), {
        name: 'ExpressionError',
        public: work,
      });
    });
  }

  it('a range in the name of a member is refused, for where doubles are sparse it has no end', () => {
    for (const filter of ['where', 'reject', 'find', 'find_index', 'has']) {
      const range = 'a[(9007199254740992..9007199254740996)]';
      const expression = `{{ data | ${filter}: '${range}' }}`;
      assert.throws(() => evaluate(expression, { data: [{ a: 1 }] }), ExpressionError);
    }
  });

  it('a number given as a long text is read once', () => {
    const digits = '9'.repeat(30_000);
    const scope = { data: digits };
    assert.equal(evaluate('{{ data | slice: data }}', scope), '');
    assert.equal(evaluate('{{ data | truncate: data }}', scope), digits);
    assert.equal(evaluate("{{ 'abcdef' | slice: '1', '2' }}", scope), 'bc');
  });

  it('uniq keeps the first of equals, also of numbers that V8 would keep in one chain', () => {
    const data = [1, '1', 1, -0, 0, null, true, 'a', 'a', '#1', 1.5, 1.5];
    assert.deepEqual(evaluate('{{ data | uniq }}', { data }), [
      1,
      '1',
      -0,
      null,
      true,
      'a',
      '#1',
      1.5,
    ]);
  });

  it('letters beyond ASCII, and the name of a member, cost more', () => {
    const letters = (letter: string) => letter.repeat(10_000);
    for (const filter of ['upcase', 'reveal: 4', 'alias_preserve_format']) {
      const [ascii, beyond] = ['x', 'Ω'].map((letter) =>
        costOf(`{{ data | ${filter} | size }}`, letters(letter)),
      );
      assert.ok((beyond ?? 0) >= 1.4 * (ascii ?? 0), filter);
    }
    const named = (name: string) => costOf(`{{ data | where: '${name}' | size }}`, [{ a: 1 }]);
    assert.ok(named('a'.repeat(400)) > named('a') + 100_000);
  });

  it('sorting costs more for each member, the more there are', () => {
    const list = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`);
    const perMember = (count: number) => costOf('{{ data | sort | size }}', list(count)) / count;
    assert.ok(perMember(10_000) > perMember(100) + 100);
  });
});

describe('a megabyte', () => {
  const megabyte = 'x'.repeat(1_000_000);
  const linear = ['upcase', 'downcase', 'strip', 'escape', 'url_encode', 'base64_encode', 'size'];
  for (const filter of linear) {
    it(`goes through ${filter}`, () => {
      assert.ok(evaluate(`{{ data | ${filter} }}`, { data: megabyte }) !== undefined);
    });
  }

  it('of the smallest values is written as JSON', () => {
    for (const [value, bytes] of [
      [0, 2],
      [0.5, 4],
      [[], 3],
      [{}, 3],
    ] as const) {
      const data = new Array<Json>(Math.floor(1_000_000 / bytes)).fill(value as Json);
      assert.equal(evaluate('{{ data | stringify }}', { data }), JSON.stringify(data));
    }
  });
});
