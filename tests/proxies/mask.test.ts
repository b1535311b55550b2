/** Masks of responses: what a pattern's groups find is hidden, in bounded time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  compilePattern,
  maskAtOnce,
  maskWorkMax,
  PatternError,
  patternLengthMax,
  programSizeMax,
} from '../../src/proxies/transforms/mask.ts';

const mask = (text: string, expression: string, replacement = '*') =>
  maskAtOnce(text, { pattern: compilePattern(expression), replacement });

describe('a mask', () => {
  const expected: readonly (readonly [expression: string, text: string, masked: string])[] = [
    ['^(aa).*?$', 'aabbccaabbccaa', '**bbcc**bbcc**'],
    [
      String.raw`"accountNumber":\s*"(.*?)"`,
      '{"accountNumber": "12345678","other":"12345678"}',
      '{"accountNumber": "********","other":"12345678"}',
    ],
    ['(a)(b)', 'abcab', '**c**'],
    ['(a)|(b)', 'abc', '**c'],
    ['x(aa)aa', 'xaaaaa', 'x****a'],
    ['(ab)x(bc)|', 'abxbcabc', '**x**abc'],
    ['(aba)y.*', 'abayababa', '***y*****'],
    ['()', 'abc', 'abc'],
    ['(a*)', 'baab', 'b**b'],
    ['(😀)', 'a😀b😀', 'a*b*'],
    ['(?i)(secret)', 'SeCrEt secret', '****** ******'],
    ['(x)', 'abc', 'abc'],
    ['(.)', '', ''],
  ];
  for (const [expression, text, masked] of expected) {
    it(`${expression} makes ${masked} of ${text}`, () =>
      assert.equal(mask(text, expression), masked));
  }

  it('writes any one character in place of one', () => {
    assert.equal(mask('a12b', '([0-9]+)', '😀'), 'a😀😀b');
    assert.equal(mask('a12b', '([0-9]+)', '$'), 'a$$b');
  });

  it('hides what JavaScript would find and changes nothing else', () => {
    const patterns = ['a(b+)', '(a)(b)?', '"(.*?)"', '(?:^|b)(a+)', '([ab]{2})c', '(a|ab)(c|bcd)?'];
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', 'd', '"', '€', '😀'),
      maxLength: 30,
    });
    fc.assert(
      fc.property(fc.constantFrom(...patterns), text, (pattern, given) => {
        const expected = given.replace(new RegExp(pattern, 'gu'), (match, ...groups) => {
          const values = groups.slice(
            0,
            groups.findIndex((one) => typeof one === 'number'),
          );
          const hidden = new Set<number>();
          for (const value of values as (string | undefined)[]) {
            if (value === undefined || value === '') continue;
            for (let at = match.indexOf(value); at >= 0; at = match.indexOf(value, at + 1)) {
              for (let unit = at; unit < at + value.length; unit += 1) hidden.add(unit);
            }
          }
          let at = 0;
          return [...match]
            .map((character) => {
              at += character.length;
              return hidden.has(at - 1) ? '*' : character;
            })
            .join('');
        });
        assert.equal(mask(given, pattern), expected);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a pattern is refused', () => {
  const refused: readonly (readonly [expression: string, message: RegExp])[] = [
    ['(?=a)(b)', /neither lookaround nor backreferences/],
    ['(?!a)(b)', /neither lookaround nor backreferences/],
    ['(?<=a)(b)', /neither lookaround nor backreferences/],
    ['(?<!a)(b)', /neither lookaround nor backreferences/],
    [String.raw`(a)\1`, /neither lookaround nor backreferences/],
    ['(a', /RE2: missing closing \)/],
    ['(a++)', /RE2: invalid nested repetition operator/],
    ['(a{1001})', /RE2: invalid repeat count|instructions/],
    ['abc', /at least one capture group/],
    ['(?:abc)', /at least one capture group/],
    ['(a{1,1000})', new RegExp(`more than ${programSizeMax} instructions`)],
    [`(${'a'.repeat(400)}){1000}`, new RegExp(`more than ${programSizeMax} instructions`)],
    ['((((a{9}){9}){9}){9}){9}', /repeat count|instructions/],
  ];
  for (const [expression, message] of refused) {
    it(expression.slice(0, 40), () => {
      assert.throws(() => compilePattern(expression), { name: 'PatternError', message });
    });
  }

  it('beyond 500 characters', () => {
    const group = (length: number) => `(${'a'.repeat(length - 2)})`;
    compilePattern(group(patternLengthMax));
    assert.throws(() => compilePattern(group(patternLengthMax + 1)), /at most 500 characters/);
  });

  it('beyond 1,000 instructions', () => {
    const sizes = [480, 500].map((count) => compilePattern(`(a{1,${count - 10}})`).programSize());
    assert.ok(sizes.every((size) => size <= programSizeMax));
    assert.throws(() => compilePattern('(a{1,500})'), PatternError);
  });

  it('and whatever it is, nothing of it is repeated', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'Zz()[]{}\\?*+|^$.<=!1,Q'), maxLength: 20 }),
        (text) => {
          try {
            mask('some text', text);
          } catch (error) {
            assert.ok(error instanceof PatternError, String(error));
            assert.doesNotMatch(error.message, /Z|z|\\/);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('unless braces are characters by number, which are no repetitions', () => {
    assert.equal(mask('a b', String.raw`(\x{20}|\x{2028})`), 'a*b');
    assert.equal(mask('aéb', String.raw`(\p{L})`, 'x'), 'xxx');
  });
});

describe('a mask that would take long', () => {
  const hostile: readonly (readonly [expression: string, piece: string])[] = [
    ['([^x]*x)|(.)', 'a'],
    [String.raw`(?i)(\pL{1,300})\d`, 'aé'],
    ['(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[z0]', 'a'],
    ['[ab]*a[ab]{200}([cd])', 'abbaaab'],
    ['((((.*)*)*)*)[xy]', 'a'],
    ['()', 'a'],
    ['(a)', 'a'],
    ['(?s)(a{1,100}).*([bc])', 'a'],
    [String.raw`(\b|\B|^|.)+[yz]`, 'x '],
  ];
  // A thirtieth of the text and of the work: what is not counted would be missed here as well.
  const scale = 32;
  for (const [expression, piece] of hostile) {
    for (const length of expression.includes('x') ? [1_000_000, 5_000_000] : [1_000_000]) {
      it(`is refused: ${expression} on ${length} characters, scaled down`, () => {
        const text = piece.repeat(length / scale / piece.length);
        const hidden = { pattern: compilePattern(expression), replacement: '*' };
        assert.equal(maskAtOnce(text, hidden, maskWorkMax / scale), undefined);
      });
    }
  }

  it('is refused in full: 5 MB, in the middle of one search', () => {
    assert.equal(mask('a'.repeat(5_000_000), '((((.*)*)*)*)[xy]'), undefined);
  });

  it('is refused at its limit, and not before', () => {
    const needed = (workMax: number) =>
      maskAtOnce('a1b2', { pattern: compilePattern('([0-9])'), replacement: '*' }, workMax);
    let most = 1;
    while (needed(most) === undefined) most += 1;
    assert.equal(needed(most), 'a*b*');
    assert.equal(needed(most - 1), undefined);
    assert.ok(most > 4 && most < 1_000, String(most));
  });

  it('is not one that finds accounts in a body of 5 MB', () => {
    const lines = Array.from(
      { length: 1000 },
      () => `{"accountNumber":"12345678","note":"${'-'.repeat(5000)}"}`,
    );
    const masked = mask(lines.join('\n'), String.raw`"accountNumber":\s*"(.*?)"`);
    assert.equal(masked?.split('"********"').length, 1001);
  });
});
