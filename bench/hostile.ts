/** Expressions made to hold the process as long as their budget lets them: every filter and operator. */

import { VaultError } from '../src/base/errors.ts';
import type { Json } from '../src/base/json.ts';
import { expressionLengthMax } from '../src/expressions/engine.ts';
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
import { searchIndexesLengthMax } from '../src/tokens/contents/contents.ts';
import { argumentsOf, inputs } from './hostile-inputs.ts';
import { hostileTexts } from './hostile-texts.ts';

/** What one expression may take, in milliseconds. */
export const turnMsMax = 50;

export interface Measured {
  readonly filter: string;
  readonly expression: string;
  readonly input: string;
  readonly ms: number;
}

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
  branches: loop('{% if data %}{% endif %}'),
  'range loops': loop('{% for a in (1..10000) reversed %}{% break %}{% endfor %}'),
  'loops in loops': `${many('{% for a in (1..1) %}', 100)}${loop('{{ data }}')}${many('{% endfor %}', 100)}`,
  'long names': loop(`{% assign x = ${many('a', 3900)} %}`),
  'loops with long names': loop(`{% for ${many('a', 3800)} in (1..1) %}{% endfor %}`),
  'text of the loop': loop('{{ forloop }}'),
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
    const calls = argumentsOf(name).map(
      (given) => `{% for i in (1..times) %}{% assign y = data | ${name}${given} %}{% endfor %}`,
    );
    yield slowest(name, calls, repeatedMs);
  }
  for (const [name, expression] of Object.entries(others)) {
    if (name.includes(only)) yield slowest(name, [expression], onceMs, otherKinds);
  }
  for (const [name, textOf] of Object.entries(hostileTexts)) {
    if (name.includes(only)) yield compiling(name, textOf);
  }
}

/** All that one token may bring: its indexes, a mask as long as they are together, an id and a fingerprint. */
const compiledLengthMax = 2 * searchIndexesLengthMax + expressionLengthMax + 400;

/** What compiling takes for that. */
function compiling(name: string, textOf: (prefix: string) => string): Measured {
  const batch = 10;
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const texts = Array.from({ length: batch }, (_, at) => textOf(`${attempt}${at}`));
    const length = texts.reduce((sum, text) => sum + text.length, 0);
    const began = processorMs();
    for (const text of texts) compiledOf(text);
    best = Math.min(best, ((processorMs() - began) * compiledLengthMax) / length);
  }
  const input = `${compiledLengthMax} characters`;
  return { filter: `compiling ${name}`, expression: textOf(''), input, ms: best };
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
const largestMax = 5;

const scopesOf = (size: number): Map<string, Scope> =>
  new Map(
    Object.entries(inputs).map(([kind, make]) => {
      const data = make(size);
      const half = typeof data === 'string' ? `${data.slice(0, data.length / 2)}!` : data;
      return [kind, { data, half, list, times: size < 1000 ? 20 : 2 }];
    }),
  );

/** As long as those that the members of a list have. */
const list = new Array<Json>(100).fill(0);

const smallScopes = smallSizes.map((size) => [size, scopesOf(size)] as const);
const largestScopes = scopesOf(largestSize);

interface Watch {
  readonly clock: () => number;
  /** How long at least something is repeated. */
  readonly batchMs: number;
}

type Measure = (subject: Subject, watch: Watch) => number;

/** How many of the small ones are measured as they should be, after a glance at all. */
const measuredMax = 6;

/** Inputs for what is not a filter: each of these spends its whole budget, and few depend on the input. */
const otherKinds = [
  'one letter',
  'blanks',
  'nothing',
  'number',
  'zeros',
  'objects',
  'named at length',
  'nested lists',
  'one object',
];

function slowest(
  filter: string,
  expressions: readonly string[],
  measure: Measure,
  among = Object.keys(inputs),
): Measured {
  const compiling = expressions.filter((expression) => compiledOf(expression) !== undefined);
  const small: (Subject & { kind: string; ms: number })[] = [];
  for (const [size, scopes] of smallScopes) {
    for (const [kind, scope] of scopes) {
      if (!among.includes(kind)) continue;
      for (const expression of compiling) {
        const subject = { input: `${kind}, ${size}`, scope, expression };
        small.push({ ...subject, kind, ms: measure(subject, glance) });
      }
    }
  }
  small.sort((a, b) => b.ms - a.ms);
  const kinds = new Map(
    small.map((one) => [`${one.kind} ${one.expression}`, one] as const).reverse(),
  );
  const large = [...kinds.values()]
    .sort((a, b) => b.ms - a.ms)
    .slice(0, largestMax)
    .map(({ kind, expression }) => ({
      input: `${kind}, ${largestSize}`,
      scope: largestScopes.get(kind) ?? {},
      expression,
    }));
  let worst: Measured = { filter, expression: '', input: '', ms: 0 };
  for (const subject of [...small.slice(0, measuredMax), ...large]) {
    const { expression, input } = subject;
    const ms = settled(measure, subject, worst.ms);
    if (ms > worst.ms) worst = { filter, expression, input, ms };
  }
  return worst;
}

/** Others use the processor too, and what is compiled late runs slowly at first: the best is what it takes. */
const attemptsMax = 5;

function settled(measure: Measure, subject: Subject, worstMs: number): number {
  let best = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < attemptsMax && best > worstMs; attempt += 1) {
    best = Math.min(best, measure(subject, { clock: processorMs, batchMs: 25 }));
  }
  return best;
}

const glance: Watch = { clock: wallMs, batchMs: 0.2 };

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
