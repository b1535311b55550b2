/** The benchmark's warm-up: it ends with the first three loads that cost about the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSteady } from '../../bench/warm-up.ts';

test('three loads whose costs differ by less than 5 % end the warm-up, whatever came before', () => {
  assert.equal(isSteady([400, 300, 100, 104.9, 102]), true);
});

test('5 % apart, or fewer than three, they do not', () => {
  assert.equal(isSteady([100, 105, 102]), false);
  assert.equal(isSteady([100, 100]), false);
});

test('a load in which no request succeeded costs no number, and is no sign of warmth', () => {
  assert.equal(isSteady([100, Number.POSITIVE_INFINITY, 100]), false);
  assert.equal(isSteady([Number.NaN, 100, 100]), false);
});
