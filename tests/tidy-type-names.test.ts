/** One more rule of the house (STYLE.md): whoever searches for a type finds one declaration. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { committedPaths, readSource, sourceFile } from './support/source.ts';
import { sharedTypeNames } from './support/tidy.ts';

test('no two files declare a type of one name', () => {
  const paths = committedPaths().filter((path) => /^src\/.*\.ts$/.test(path));
  assert.deepEqual(sharedTypeNames(paths.map(readSource)), []);
});

test('no two files declare a type of one name: the rule can fail', () => {
  const clashes = [
    ['export interface Run {}', 'interface Run extends Call {}'],
    ['type Run = string;', 'export type Run<T> =\n  | T;'],
    ['class Run {}', 'function start() {\n  class Run {}\n}'],
    ['export abstract class Run {}', 'type Run = 1;'],
  ];
  for (const [one = '', other = ''] of clashes) assert.equal(breaches(one, other).length, 1, other);

  assert.deepEqual(breaches('type Run = 1;\ntype Run = 1;', 'type Runs = 1; // type Run = 1'), []);
  assert.deepEqual(breaches('export interface Run {}', "import type { Run } from './a.ts';"), []);
  assert.deepEqual(
    breaches('class Run {}', "import {\n  type Run,\n  type Run as Other,\n} from './a.ts';"),
    [],
  );
  assert.deepEqual(breaches('interface Run {}', "const a = 'interface Run {}';"), []);
});

function breaches(one: string, other: string): string[] {
  return sharedTypeNames([sourceFile('src/lib/a.ts', one), sourceFile('src/lib/b.ts', other)]);
}
