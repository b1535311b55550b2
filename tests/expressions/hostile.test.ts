/** Expressions that would hold the process: each is refused by what it may cost, before it is run. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../src/base/json.ts';
import { Budget, requestWorkMax, workMax } from '../../src/expressions/evaluation/budget.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { newEvaluation, newWriteEvaluation } from '../../src/expressions/evaluation/evaluation.ts';
import { compileExpression, evaluateExpression } from '../../src/expressions/expression.ts';

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
    ['branches', loop(`{% if nil %}${many('{% elsif nil %}', 200)}{% endif %}`), null],
    [
      'branches of unless',
      loop(`{% unless 1 %}${many('{% elsif nil %}', 200)}{% endunless %}`),
      null,
    ],
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

describe('each of these costs at least what it was measured to take', () => {
  const listOf = <T>(length: number, make: (at: number) => T) =>
    Array.from({ length }, (_, at) => make(at));
  const nested = (leaf: Json) => {
    let inner = leaf;
    for (let level = 0; level < 60; level += 1) inner = [inner];
    return inner;
  };
  const zeros = listOf(100, () => 0);
  const name = 'x'.repeat(30_000);
  const wide = Object.fromEntries(listOf(1000, (at) => [`k${at}`, 1]));
  const costs: readonly (readonly [what: string, expression: string, data: Json, least: number])[] =
    [
      ['the name of a member in JSON', '{{ data | stringify }}', { [name]: 1 }, 2 * name.length],
      ['the name of a member in a response', '{{ data }}', { [name]: 1 }, name.length],
      ['the name of a member between words', '-{{ data }}', { [name]: 1 }, name.length],
      ['characters to be trimmed', '{{ "x" | strip: data }}', name, 300 * name.length],
      ['characters trimmed at the beginning', '{{ "x" | lstrip: data }}', name, 300 * name.length],
      ['characters trimmed at the end', '{{ "x" | rstrip: data }}', name, 300 * name.length],
      ['a loop over an object', '{% for a in data %}{% break %}{% endfor %}', wide, 200_000],
      ['an object beside empty', '{% if data == empty %}{% endif %}', wide, 100_000],
      ['the size of an object', '{{ data.size }}', wide, 60_000],
      ['numbers of a range', '{% assign a = (1..10000) %}', null, 40_000],
      ['a loop over a range', '{% for a in (1..10000) %}{% break %}{% endfor %}', null, 150_000],
      [
        'a list that members are compared with',
        "{% assign e = data[0].a %}{{ data | where: 'a', e | size }}",
        listOf(50, () => ({ a: zeros })),
        50 * 100 * 200,
      ],
      ['lists that are sorted', '{{ data | sort | size }}', listOf(20, () => zeros), 1_400_000],
      [
        'texts beyond ASCII sorted without case',
        '{{ data | sort_natural | size }}',
        listOf(100, (at) => `${'Ω'.repeat(300)}${at}`),
        4_000_000,
      ],
      ['a sum of lists', '{{ data | sum }}', listOf(100, () => nested(1)), 2_400_000],
      [
        'lists nested in lists as JSON',
        '{{ data | stringify }}',
        listOf(100, () => nested(1)),
        500_000,
      ],
      ['words', '{{ data | truncatewords: 100000 | size }}', 'a '.repeat(10_000), 500_000],
      ['characters encoded', '{{ data | url_encode | size }}', ' '.repeat(10_000), 250_000],
      ['entities', '{{ data | escape_once | size }}', '&amp;'.repeat(2000), 250_000],
      ['filling up', "{{ data | pad_left: 10000, 'x' | size }}", 'x'.repeat(10_000), 40_000],
      ['a masked card', '{{ data | card_mask | size }}', 'x'.repeat(10_000), 200_000],
      ['digits that pass no check', '{{ data | alias_card | size }}', '4'.repeat(16), 8000],
      ['a wildcard over an object', "{{ data | json: '$[?@.a]' }}", wide, 400_000],
      [
        'characters beyond ASCII that may be kept',
        "{{ data | reveal: 1, 1, 'X', 'abc' | size }}",
        'Ω'.repeat(10_000),
        300_000,
      ],
      ['a date', "{{ 0 | date: '%Y%Y%Y%Y%Y%Y%Y%Y' }}", null, 9000],
      ['arguments', '{{ 1 | abs: data, data, data, data, data, data }}', 1, 8000],
    ];
  for (const [what, expression, data, least] of costs) {
    it(what, () => {
      const cost = costOf(expression, data);
      assert.ok(cost >= least, `${cost} units, expected at least ${least}`);
    });
  }

  it('looking at the ends of a list costs the same however long it is', () => {
    for (const filter of ['first', 'last', 'size', "default: 'x' | size"]) {
      const [short, long] = [1, 10_000].map((length) =>
        costOf(
          `-{{ data | ${filter} }}`,
          listOf(length, () => 0),
        ),
      );
      assert.ok((long ?? 0) <= (short ?? 0) + 40, filter);
    }
  });
});

describe('all evaluations of a request', () => {
  const spend = (budget: Budget, amount: number) => {
    budget.begin();
    budget.use(amount);
  };
  const beyond = (max: number) => ({
    name: 'ExpressionError',
    public: `needs more than is left of the ${max} units of work of this request`,
  });

  it(`may cost ${requestWorkMax} units where it reads`, () => {
    const { budget } = newEvaluation();
    spend(budget, workMax);
    spend(budget, workMax);
    assert.throws(() => spend(budget, 50_001), beyond(requestWorkMax));
    spend(budget, 50_000);
  });

  it(`may cost ${workMax} where it writes, as much as one evaluation, so that they fit into one turn`, () => {
    const { budget } = newWriteEvaluation();
    spend(budget, workMax - 1_000_000);
    spend(budget, 1_000_000);
    assert.throws(() => spend(budget, 50_001), beyond(workMax));
    spend(budget, 50_000);
  });

  it('cost the same when the request is decided again', () => {
    const { budget } = newWriteEvaluation();
    spend(budget, workMax - 1_000_000);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const copy = budget.copy();
      spend(copy, 1_000_000);
      assert.throws(() => spend(copy, 50_001), beyond(workMax));
    }
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
