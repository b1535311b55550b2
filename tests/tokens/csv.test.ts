/** Comma-separated values by RFC 4180, section 2, rule by rule. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readCsv } from '../../src/tokens/enrichments/csv.ts';

const fieldsOf = (text: string) => [...readCsv(text)].map(({ fields }) => fields);
const linesOf = (text: string) => [...readCsv(text)].map(({ line }) => line);

test('records end with a line break, which the last one may lack', () => {
  const records = [
    ['aaa', 'bbb'],
    ['zzz', 'yyy'],
  ];
  for (const text of ['aaa,bbb\r\nzzz,yyy\r\n', 'aaa,bbb\nzzz,yyy', '\uFEFFaaa,bbb\nzzz,yyy\n']) {
    assert.deepEqual(fieldsOf(text), records);
  }
  assert.deepEqual(fieldsOf(''), []);
});

test('spaces belong to a field, and fields may be empty', () => {
  assert.deepEqual(fieldsOf(' a , b\n,\n\nx,'), [[' a ', ' b'], ['', ''], [''], ['x', '']]);
});

test('a quoted field holds commas, line breaks and doubled quotes', () => {
  assert.deepEqual(fieldsOf('"a,b","c\r\nd","e""f",""\r\ng'), [
    ['a,b', 'c\r\nd', 'e"f', ''],
    ['g'],
  ]);
});

test('a record knows the line on which it begins', () => {
  assert.deepEqual(linesOf('a\n"b\nc\n"\nd\r\n"e\r\nf",g\nh'), [1, 2, 5, 6, 8]);
});

test('a quote out of place or never closed is refused by its line', () => {
  for (const wrong of ['a"b', '"a"b', ' "a"', '"a', '"a""', 'a\rb']) {
    assert.throws(() => fieldsOf(`x\n"y\nz",1\n${wrong}`), /^DamagedFileError: line 4 has a quote/);
  }
});

test('a quote that is never closed costs no more than the length of the text', () => {
  assert.throws(() => fieldsOf(`"${'a""'.repeat(1_000_000)}`), /DamagedFileError: line 1/);
});
