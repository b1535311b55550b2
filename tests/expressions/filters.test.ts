/** Every filter against the vectors, published and our own. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { VaultError } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { compileExpression, evaluateExpression } from '../../src/expressions/expression.ts';
import { filters } from '../../src/expressions/filters/filters.ts';

/** One row of the vector files: what the expression gives on the data, or how it fails. */
interface Vector {
  readonly data: Json;
  readonly expression: string;
  readonly result?: Json;
  /** For random results. */
  readonly pattern?: string;
  /** What the failed evaluation tells. */
  readonly error?: string;
  /** What the refused expression tells, after its place. */
  readonly invalid?: string;
}

function vectorsOf(name: string): Vector[] {
  return JSON.parse(
    readFileSync(new URL(`../../src/expressions/vectors/${name}`, import.meta.url), 'utf8'),
  );
}

const published = vectorsOf('published.json');
const own = vectorsOf('filters.json');

describe('published vectors', () => {
  for (const vector of published) it(nameOf(vector), () => check(vector));
});

describe('our vectors', () => {
  for (const vector of own) it(nameOf(vector), () => check(vector));

  it('have a result, a null and a failure for every filter', () => {
    for (const name of filters.keys()) {
      const rows = own.filter(({ expression }) => expression.includes(`| ${name}`));
      assert.ok(
        rows.some(({ data, invalid }) => data === null && invalid === undefined),
        `${name}: null`,
      );
      // What takes anything without an argument cannot fail but by an argument.
      assert.ok(
        rows.some(({ error, invalid }) => error !== undefined || invalid !== undefined) ||
          name === 'json_stringify',
        `${name}: failure`,
      );
    }
  });
});

function nameOf({ data, expression, error, invalid }: Vector): string {
  const outcome = invalid ?? error;
  return `${expression} on ${JSON.stringify(data)}${outcome ? ' fails' : ''}`;
}

function check({ data, expression, result, pattern, error, invalid }: Vector): void {
  const evaluate = () => evaluateExpression(compileExpression(expression, 'mask'), { data });
  if (invalid !== undefined) {
    assert.throws(evaluate, (thrown) => {
      assert.ok(thrown instanceof VaultError);
      const [message = ''] = thrown.errors?.['mask'] ?? [];
      assert.match(message, /^is not a valid expression: at character \d+, /);
      assert.ok(message.endsWith(`, ${invalid}`), message);
      return true;
    });
  } else if (error !== undefined) {
    assert.throws(evaluate, (thrown) => {
      assert.ok(thrown instanceof ExpressionError);
      assert.equal(thrown.public, error);
      return true;
    });
  } else if (pattern !== undefined) {
    assert.match(String(evaluate()), new RegExp(pattern));
  } else {
    assert.deepEqual(evaluate() ?? null, result);
  }
}
