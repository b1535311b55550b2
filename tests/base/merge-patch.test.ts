/** JSON merge patches: what lies between two values, in as few words as there are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Json } from '../../src/base/json.ts';
import { mergePatch, patchBetween } from '../../src/base/merge-patch.ts';

test('the patch between two values holds what differs and nothing else', () => {
  const cases: [before: Json, after: Json, patch: Json][] = [
    [{ a: 1, b: 2 }, { a: 1, b: 2 }, {}],
    [{ a: 1, b: 2 }, { a: 1 }, { b: null }],
    [{ a: { b: 1, c: 2 }, d: [1] }, { a: { b: 1 }, d: [1] }, { a: { c: null } }],
    [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
    [{ a: 1 }, { a: { b: 1 }, c: 3 }, { a: { b: 1 }, c: 3 }],
    ['text', [1], [1]],
  ];
  for (const [before, after, patch] of cases) {
    assert.deepEqual(patchBetween(before, after), patch);
    assert.deepEqual(mergePatch(before, patch), after);
  }
});

test('merged into the first value it gives the second, for values without null', () => {
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json>('', 'x', 0, 1, true),
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), tie('value'), {
        maxKeys: 3,
        noNullPrototype: true,
      }),
    ),
  }));
  fc.assert(
    fc.property(value, value, (before, after) => {
      assert.deepEqual(mergePatch(before, patchBetween(before, after)), after);
    }),
  );
});
