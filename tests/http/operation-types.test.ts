/** What the compiler refuses; `npm run check` fails when one of these begins to compile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { operation } from '../../src/api/declaration/operation.ts';
import { attribute, object } from '../../src/api/declaration/shape.ts';
import type { Decide } from '../../src/rules/operation.ts';

const handle = (): Decide => {
  throw new Error('no request comes here');
};
const rest = { method: 'GET', path: '/a', reply: { status: 200 }, handle } as const;
const texts = { id: 'getA', summary: 'Read an A', example: {} } as const;

test('an operation without a permission does not compile', () => {
  // @ts-expect-error the permission is missing
  const open = operation({ ...rest, ...texts });
  // @ts-expect-error nobody holds this permission
  const misspelt = operation({ ...rest, ...texts, permission: 'token:raed' });
  // @ts-expect-error a permission that may be undefined is none
  const absent = operation({ ...rest, ...texts, permission: undefined });
  const declared = operation({ ...rest, ...texts, permission: 'token:read' });
  assert.deepEqual(
    [open, misspelt, absent, declared].map(({ permission }) => permission),
    [undefined, 'token:raed', undefined, 'token:read'],
  );
});

test('an operation without an id, a summary or an example does not compile', () => {
  const { id, summary, example } = texts;
  const permission = 'token:read';
  // @ts-expect-error the id is missing
  const unnamed = operation({ ...rest, permission, summary, example });
  // @ts-expect-error the summary is missing
  const silent = operation({ ...rest, permission, id, example });
  // @ts-expect-error the example is missing
  const bare = operation({ ...rest, permission, id, summary });
  assert.equal([unnamed, silent, bare].length, 3);
});

test('an attribute without a meaning does not compile', () => {
  // @ts-expect-error the meaning is missing
  const silent = object({ id: Type.String() });
  const declared = object({ id: attribute(Type.String(), 'Identifies it.') });
  assert.deepEqual(JSON.stringify(silent), JSON.stringify(declared));
});
