/** Aliases are random, keep what they promise, and are never a card number. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { luhnValid } from '../../src/base/checks.ts';
import { pooledRandom, type Random } from '../../src/base/random.ts';
import { ExpressionError } from '../../src/expressions/evaluation/error.ts';
import { newEvaluation } from '../../src/expressions/evaluation/evaluation.ts';
import { compileExpression, evaluateExpression } from '../../src/expressions/expression.ts';

const random = pooledRandom();

function alias(filter: string, data: string, source: Random = random): string {
  return String(
    evaluateExpression(
      compileExpression(`{{ data | ${filter} }}`),
      { data },
      newEvaluation(source),
    ),
  );
}

const flag = fc.boolean();
const number = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 11, maxLength: 19 });

describe('alias_card', () => {
  it('never passes the Luhn check and never is the number itself', () => {
    const property = fc.property(number, flag, flag, (digits, bin, last4) => {
      const card = digits.join('');
      const made = alias(`alias_card: '${bin}', '${last4}'`, card);
      assert.equal(made.length, card.length);
      assert.equal(luhnValid(made), false);
      assert.notEqual(made, card);
      const first = bin ? (card.length < 16 ? 6 : 8) : 0;
      assert.equal(made.slice(0, first), card.slice(0, first));
      if (last4) assert.equal(made.slice(-4), card.slice(-4));
    });
    fc.assert(property, { numRuns: 2000 });
  });

  it('finds an alias when a single digit is free', () => {
    const seen = new Set<string>();
    for (let count = 0; count < 300; count += 1) {
      seen.add(alias("alias_card: 'true', 'true'", '42424242424'));
    }
    // Of ten digits, one makes the number pass the Luhn check and one is the card's own.
    assert.equal(seen.size, luhnValid('42424242424') ? 9 : 8);
  });

  it('draws every digit equally often where it is free', () => {
    const counts = new Array<number>(10).fill(0);
    for (let count = 0; count < 20_000; count += 1) {
      const first = Number(alias('alias_card', '4242424242424242')[0]);
      counts[first] = (counts[first] ?? 0) + 1;
    }
    // Six standard deviations of a binomial count with n = 20,000 and p = 1/10 are 255.
    for (const count of counts) assert.ok(Math.abs(count - 2000) < 255, counts.join());
  });

  it('takes its randomness from what it is given', () => {
    const zeros: Random = (length) => Buffer.alloc(length);
    assert.equal(alias('alias_card', '4242-4242-4242-4242', zeros), '0000-0000-0000-0001');
    assert.equal(alias('alias_preserve_format', 'AB-12', zeros), 'aa-00');
    assert.equal(alias('alias_preserve_length', 'AB-12', zeros), 'aaaaa');
  });
});

describe('alias_preserve_format and alias_preserve_length', () => {
  const text = fc.string({ unit: 'grapheme-composite', maxLength: 12 });
  const count = fc.integer({ min: 0, max: 6 });

  it('keep the ends, the number of characters and, the former, what each of them is', () => {
    const property = fc.property(text, count, count, (original, first, last) => {
      for (const filter of ['alias_preserve_format', 'alias_preserve_length']) {
        const characters = [...original];
        const lastAt = characters.length - last;
        let made: string[];
        try {
          made = [...alias(`${filter}: ${first}, ${last}`, original)];
        } catch (error) {
          assert.ok(error instanceof ExpressionError);
          continue;
        }
        assert.equal(made.length, characters.length);
        characters.forEach((character, index) => {
          const other = made[index] ?? '';
          if (index < first || index >= lastAt) assert.equal(other, character);
          else if (filter === 'alias_preserve_length') assert.match(other, /[a-z0-9]/);
          else if (/\p{L}/u.test(character)) assert.match(other, /[a-z]/);
          else if (/\p{Nd}/u.test(character)) assert.match(other, /[0-9]/);
          else assert.equal(other, character);
        });
      }
    });
    fc.assert(property, { numRuns: 1000 });
  });

  it('fail rather than give the text itself', () => {
    for (const filter of ['alias_preserve_format: 2, 2', 'alias_preserve_length: 9']) {
      assert.throws(() => alias(filter, 'abcd'), ExpressionError);
    }
  });
});
