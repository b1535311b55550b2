/** Reading source text, for the rules about it: what is code, and what is said beside it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from './support/source.ts';

test('comments, strings and regular expressions are distinguished from code', () => {
  const blanks: Record<string, string> = {
    "a = 'b // c'; // d": "a = '      ';     ",
    'a /* b\nc */ / d / e': 'a     \n     / d / e',
    "x = /'[/]/u.test(y)": 'x = /     u.test(y)',
    [`\`a \${f({ b: \`c \${d}\` })} e\``]: '`   {f({ b: `   {d}` })}  `',
    "'it\\'s' + b": "'     ' + b",
  };
  for (const [text, code] of Object.entries(blanks)) assert.equal(codeOf(text), code);
});
