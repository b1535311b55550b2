/** JSON texts of our own: one for one value, whatever order its keys had, and the same as everybody writes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Json, jsonText, sortedJson } from '../../src/base/json.ts';

/** As receivers write what they parsed: the public sample's method. */
function stableStringify(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(stableStringify).join(',')}]`;
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${stableStringify(object[key])}`).join(',')}}`;
}

test('keys are in order at every level, also those that look like integers, and lists as they were', () => {
  const value: Json = { b: [{ d: 1, c: 2 }, 'x'], a: { 10: null, 9: true, B: 'é\u2028"' } };
  assert.equal(
    sortedJson(value),
    '{"a":{"10":null,"9":true,"B":"é\u2028\\""},"b":[{"c":2,"d":1},"x"]}',
  );
});

test('who parses the text and sorts it again has the same text', () => {
  const names = ['__proto__', 'constructor', '1', '01', 'ü', '\u{1F600}', '\uFFFD', '', ' '];
  const value = JSON.parse(
    `{${names.map((name) => `${JSON.stringify(name)}:{"z":-0,"a":1e21}`).join(',')}}`,
  ) as Json;
  const text = sortedJson(value);
  assert.equal(stableStringify(JSON.parse(text)), text);
  assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(value)));
});

test('a text is written as JSON.stringify writes it, every character at each end and in the middle', () => {
  for (let code = 0; code <= 0xffff; code++) {
    const character = String.fromCharCode(code);
    for (const text of [character, `${character}a`, `a${character}`, `a${character}a`]) {
      assert.equal(jsonText(text), JSON.stringify(text));
    }
  }
  for (const text of ['', '\u{1F600}', '\ud83dx', 'a\n', '\n']) {
    assert.equal(jsonText(text), JSON.stringify(text));
  }
});
