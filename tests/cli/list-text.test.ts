/** What a list shows of stored text: callers chose some of it, and it must not steer the terminal of an operator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { printList } from '../../src/cli/terminal/table.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';

test('no cell of a list holds a character that steers a terminal or reorders its line', () => {
  let shown = '';
  const stdout = { write: (text: string) => (shown += text) };
  const hostile = [
    '\u001b[2J',
    '\u009b31m',
    'a\u202eb',
    'c\u2066d',
    'e\u200bf',
    'g\u2028h',
    'i\nj',
  ];
  printList(
    { stdout } as unknown as Terminal,
    {},
    {
      rows: hostile,
      json: (id) => ({ id }),
      columns: { id: (id) => id },
    },
  );
  const lines = shown.split('\n');
  assert.equal(lines.length, hostile.length + 2);
  for (const line of lines) assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  assert.ok(lines.includes('a\\u202eb'), shown);
});
