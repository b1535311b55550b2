/** Failures as problem documents. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problemOf, vaultErrorOf } from '../../src/http/protocol/problem.ts';

test('500: a failure that may have come after the commit does not promise that nothing happened', () => {
  const { status, detail } = problemOf(vaultErrorOf(new Error('mArKeR')));
  assert.equal(status, 500);
  assert.match(detail, /may have taken effect/);
  assert.equal(detail.includes('mArKeR'), false);
});
