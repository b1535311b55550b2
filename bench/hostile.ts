/** Expressions made to hold the process as long as their budget lets them: every filter and operator. */
import { Budget, workMax } from '../src/expressions/evaluation/budget.ts';
import { ExpressionError } from '../src/expressions/evaluation/error.ts';
import { newEvaluation } from '../src/expressions/evaluation/evaluation.ts';
import {
  compileExpression,
  type Expression,
  evaluateExpression,
} from '../src/expressions/expression.ts';
import { filters } from '../src/expressions/filters/filters.ts';
import { boundedFilters } from '../src/expressions/filters/standard-filters.ts';
import { VaultError } from '../src/lib/errors.ts';
import type { Json } from '../src/lib/json.ts';
import { collidingNumbers } from './colliding-numbers.ts';

/** What one expression may take, in milliseconds. */
export const turnMsMax = 50;

export interface Measured {
  readonly filter: string;
  readonly expression: string;
  readonly input: string;
  readonly ms: number;
}

const textOf = (piece: string) => (size: number) =>
  piece.repeat(Math.ceil(size / piece.length)).slice(0, size);

/** About `size` characters of JSON each; what is kept of a token has no more than a million. */
const inputs: Readonly<Record<string, (size: number) => Json>> = {
  'one letter': textOf('x'),
  digits: textOf('4'),
  markup: textOf('<&'),
  'opened comments': textOf('<!--'),
  entities: textOf('&amp;'),
  blanks: textOf(' '),
  lines: textOf('\r\n'),
  words: textOf('a '),
  percents: textOf('%41+'),
  'beyond Latin-1': (size) => textOf('Ωß')(size / 2),
  'sharp s': (size) => textOf('ß')(size / 2),
  pairs: (size) => textOf('😀')(size / 4),
  nothing: () => null,
  number: () => 1.5,
  zeros: (size) => new Array<Json>(size / 2).fill(0),
  decimals: (size) => Array.from({ length: size / 19 }, (_, at) => Math.sqrt(at + 2)),
  halves: (size) => Array.from({ length: size / 6 }, (_, at) => at + 0.5),
  'colliding numbers': (size) => collidingNumbers(Math.floor(size / 11)),
  'short texts': (size) => Array.from({ length: size / 10 }, (_, at) => `k${at * 7919}`),
  'long texts': (size) =>
    Array.from({ length: 100 }, (_, at) => `${'x'.repeat(Math.floor(size / 100))}${at}`),
  'empty lists': (size) => Array.from({ length: size / 3 }, () => []),
  'empty objects': (size) => Array.from({ length: size / 3 }, () => ({})),
  objects: (size) => Array.from({ length: size / 8 }, (_, at) => ({ a: at })),
  'one object': (size) => Object.fromEntries(Array.from({ length: size / 10 }, (_, k) => [k, 1])),
  'nested objects': (size) =>
    Array.from({ length: size / 360 }, () => {
      let inner: Json = 1;
      for (let level = 0; level < 60; level += 1) inner = { a: inner };
      return inner;
    }),
};

const steps = (step: string, count: number) => new Array(count).fill(step).join('.');

const standardArguments = [
  '',
  ": 'x'",
  ': 5',
  ': 400000',
  ': data',
  ': half',
  ": 'x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy'",
  ": '', 'y'",
  ': half, data',
  ': data, data',
  ': 1, 1000000',
  ": 'a'",
  ": 'a', data",
  `: '${steps('a', 199)}'`,
];

const argumentsByFilter: Readonly<Record<string, readonly string[]>> = {
  date: ['%c', '%x', '%X', '%A', '%B', '%Z', '%j', '%N', '%^#_0-%Y'].flatMap((code) => [
    `: '${code.repeat(Math.floor(190 / code.length))}'`,
    `: '${code}', 'Europe/Berlin'`,
  ]),
  hmac: [": 'sha-1', 'k'", ": 'sha-512', 'k'", ": 'sha-512', data"],
  json: [
    ": '$[*]'",
    ": '$..*'",
    ": '$..a'",
    `: '$${'.a'.repeat(60)}'`,
    `: '$${'[*]'.repeat(60)}'`,
    `: '$${'[*,*]'.repeat(60)}'`,
    `: '$..[${'0,'.repeat(300)}0]'`,
    ": '$[::-1]'",
    ": '$[?@.a == 1]'",
    ": '$..[?@ == @]'",
    ": '$..[?length(@) > 1 && @.a < 2]'",
    `: '$[?${steps('@', 1)}${' || @.a'.repeat(120)}]'`,
    ': half',
  ],
  card_exp: [": 'MMYYYY'"],
  pad_left: [": 10000, 'x'"],
  pad_right: [": 10000, 'x'"],
  reveal: ['', ": 4, 4, '*'", ": 4, 4, '😀', 'abc'"],
  reveal_last: [': 4', ": 4, '😀'"],
  card_mask: ['', ": true, true, '😀', 'abc'"],
  card_bin: ['', ": 'abc'"],
  alias_card: ['', ': true, true'],
  alias_preserve_format: ['', ': 4, 4'],
  alias_preserve_length: ['', ': 4, 4'],
};

const many = (piece: string, count: number) => piece.repeat(count);
const loop = (inner: string) => `{% for i in (1..9999) %}${inner}{% endfor %}`;

/** What is not a filter: operators, members, tags and outputs. */
const others: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['==', '!=', '<', '<=', '>', '>=', 'contains', 'and', 'or'].flatMap((operator) => [
      [`${operator} itself`, loop(`{% if data ${operator} data %}{% endif %}`)],
      [`${operator} half`, loop(`{% if data ${operator} half %}{% endif %}`)],
      [`${operator} many`, loop(`{% assign x = 1${many(` ${operator} 1`, 300)} %}`)],
    ]),
  ),
  not: loop(`{% assign x = ${many('not ', 900)}1 %}`),
  members: loop(`{% assign x = data${many('.a', 1800)} %}`),
  'missing members': loop(`{% assign x = nope${many('.a', 1800)} %}`),
  'members in brackets': loop(`{% assign x = data${many("['a']", 700)} %}`),
  sizes: loop('{% assign x = data.size %}'),
  when: loop(`{% case data %}{% when 1${many(',1', 1800)} %}{% endcase %}`),
  'when half': loop(`{% case data %}{% when half${many(',half', 20)} %}{% endcase %}`),
  elsif: loop(`{% if nil %}${many('{% elsif nil %}', 200)}{% endif %}`),
  ranges: loop('{% assign x = (1..10000) %}'),
  'loop over it': loop('{% for a in data %}{% break %}{% endfor %}'),
  'loop over it backwards': loop('{% for a in data reversed %}{% break %}{% endfor %}'),
  'loop over it whole': '{% for a in data %}{% for b in data %}{{ b }}{% endfor %}{% endfor %}',
  outputs: loop(many('{{ data }}', 100)),
  words: loop(many('{{ i }}x', 200)),
  capture: loop('{% capture x %}{{ data }}{% endcapture %}'),
  growing: loop('{% assign x = x | append: data %}'),
  'growing capture': loop('{% capture x %}{{ x }}{{ data }}{% endcapture %}'),
  'new paths': loop(
    `{% assign p = "$${many('[?@.a]', 90)}[?@.b" | append: i | append: "]" %}{% assign y = 1 | json: p %}`,
  ),
};

/** The slowest way of each filter, or only of those with `only` in their names. */
export function* measureHostile(only = ''): Generator<Measured> {
  for (const name of [...boundedFilters.keys(), ...filters.keys()]) {
    if (!name.includes(only)) continue;
    const calls = (argumentsByFilter[name] ?? standardArguments).map(
      (given) => `{% for i in (1..40) %}{% assign y = data | ${name}${given} %}{% endfor %}`,
    );
    yield slowest(name, calls, repeatedMs);
  }
  for (const [name, expression] of Object.entries(others)) {
    if (name.includes(only)) yield slowest(name, [expression], onceMs);
  }
}

type Scope = Record<string, Json>;

interface Subject {
  readonly input: string;
  readonly scope: Scope;
  readonly expression: string;
}

/** A token's data and the body that brings it; the largest is all that a body of 1 MiB has room for. */
const smallSizes = [20, 30_000];
const largestSize = 1_000_000;

/** Of the largest inputs only those are tried that were slowest when they were small. */
const largestMax = 8;

const scopesOf = (size: number): Map<string, Scope> =>
  new Map(
    Object.entries(inputs).map(([kind, make]) => {
      const data = make(size);
      const half = typeof data === 'string' ? `${data.slice(0, data.length / 2)}!` : data;
      return [kind, { data, half }];
    }),
  );

const smallScopes = smallSizes.map((size) => [size, scopesOf(size)] as const);
const largestScopes = scopesOf(largestSize);

interface Watch {
  readonly clock: () => number;
  /** How long at least something is repeated. */
  readonly batchMs: number;
}

type Measure = (subject: Subject, watch: Watch) => number;

function slowest(filter: string, expressions: readonly string[], measure: Measure): Measured {
  let worst: Measured = { filter, expression: '', input: '', ms: 0 };
  const compiling = expressions.filter((expression) => compiledOf(expression) !== undefined);
  const byKind = new Map<string, { kind: string; expression: string; ms: number }>();
  const measured = (kind: string, size: number, subject: Omit<Subject, 'input'>) => {
    const input = `${kind}, ${size}`;
    const ms = settled(measure, { ...subject, input }, worst.ms);
    if (ms > worst.ms) worst = { filter, expression: subject.expression, input, ms };
    return ms;
  };
  for (const [size, scopes] of smallScopes) {
    for (const [kind, scope] of scopes) {
      for (const expression of compiling) {
        const ms = measured(kind, size, { scope, expression });
        const key = `${kind} ${expression}`;
        byKind.set(key, { kind, expression, ms: Math.max(ms, byKind.get(key)?.ms ?? 0) });
      }
    }
  }
  const slow = [...byKind.values()].sort((a, b) => b.ms - a.ms).slice(0, largestMax);
  for (const { kind, expression } of slow) {
    const scope = largestScopes.get(kind);
    if (scope) measured(kind, largestSize, { scope, expression });
  }
  return worst;
}

/** Slow ones are measured again, because others use the processor too; the best is what it takes. */
const attemptsMax = 4;

function settled(measure: Measure, subject: Subject, worstMs: number): number {
  const enough = Math.max(worstMs, turnMsMax / 2);
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attemptsMax && best > enough; attempt += 1) {
    // A look at the clock says that it is fast, and only the processor's own time that it is not.
    const [clock, batchMs] = attempt === 0 ? [wallMs, 1] : [processorMs, 25];
    best = Math.min(best, measure(subject, { clock, batchMs }));
  }
  return best;
}

function wallMs(): number {
  return performance.now();
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** A budget that says what was spent. */
class CountedBudget extends Budget {
  spent = 0;

  override use(amount: number): void {
    if (Number(amount) > 0) this.spent += Number(amount);
    super.use(amount);
  }
}

/** What it would take until the budget is spent, from runs that do not spend it. */
function repeatedMs({ expression, scope }: Subject, { clock, batchMs }: Watch): number {
  const first = run(expression, scope);
  if (first.failed) return onceMs({ expression, scope }, { clock, batchMs });
  const began = clock();
  const until = performance.now() + batchMs;
  let spent = 0;
  while (spent === 0 || performance.now() < until) spent += run(expression, scope).spent;
  return ((clock() - began) * workMax) / spent;
}

function onceMs({ expression, scope }: Omit<Subject, 'input'>, { clock, batchMs }: Watch): number {
  const began = clock();
  const until = performance.now() + batchMs;
  let times = 0;
  while (times === 0 || performance.now() < until) {
    run(expression, scope);
    times += 1;
  }
  return (clock() - began) / times;
}

function run(expression: string, scope: Scope): { spent: number; failed: boolean } {
  const budget = new CountedBudget();
  const compiled = compiledOf(expression);
  let failed = compiled === undefined;
  try {
    if (compiled) evaluateExpression(compiled, scope, { ...newEvaluation(), budget });
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    failed = true;
  }
  return { spent: budget.spent, failed };
}

/** Nothing for an argument that the filter does not take. */
function compiledOf(expression: string): Expression | undefined {
  try {
    return compileExpression(expression);
  } catch (error) {
    if (error instanceof VaultError) return undefined;
    throw error;
  }
}
