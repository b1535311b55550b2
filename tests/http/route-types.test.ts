/** What the compiler refuses; `npm run check` fails when one of these begins to compile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { route } from '../../src/http/protocol/route.ts';
import type { Decide } from '../../src/rules/operation.ts';

const handle = (): Decide => {
  throw new Error('no request comes here');
};
const rest = { method: 'GET', path: '/a', summary: 'A', reply: { status: 200 }, handle } as const;

test('a route without a permission does not compile', () => {
  // @ts-expect-error the permission is missing
  const open = route(rest);
  // @ts-expect-error nobody holds this permission
  const misspelt = route({ ...rest, permission: 'token:raed' });
  // @ts-expect-error a permission that may be undefined is none
  const absent = route({ ...rest, permission: undefined });
  const declared = route({ ...rest, permission: 'token:read' });
  assert.deepEqual(
    [open, misspelt, absent, declared].map(({ permission }) => permission),
    [undefined, 'token:raed', undefined, 'token:read'],
  );
});
