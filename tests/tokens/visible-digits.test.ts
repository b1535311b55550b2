/** The digits by which guesses are counted are found in text of every script, at a cost that its length decides. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visibleInSearch } from '../../src/tokens/guesses/visible-digits.ts';

/** The last of the mathematical digits, of which Unicode has fifty in a row. */
const nine = '\u{1D7FF}';

test('digits of every script are the same digits', () => {
  const zeros = { arabic: 0x660, fullwidth: 0xff10, mathematical: 0x1d7f6 };
  for (const zero of Object.values(zeros)) {
    const text = '4242424242424242'.replace(/\d/g, (digit) =>
      String.fromCodePoint(zero + Number(digit)),
    );
    assert.deepEqual(visibleInSearch(text), visibleInSearch('4242424242424242'));
  }
});

test('a text of one digit, however often it has it, computes its value once', (t) => {
  const { mock } = t.mock.method(String, 'fromCodePoint');
  const text = nine.repeat(2_000);
  assert.deepEqual(visibleInSearch(text), visibleInSearch('9'.repeat(2_000)));
  const looks = mock.callCount();
  assert.ok(looks < 100, `${looks} characters were looked at`);
});
