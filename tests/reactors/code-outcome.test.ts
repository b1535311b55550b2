/** What of a failure of code is stored, where its process belongs to an attacker. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outcomeOf } from '../../src/reactors/runs/outcome.ts';

test('the cause of a failure is a line of the log, however long the message is', () => {
  const errors = { error: ['x'.repeat(900_000)] };
  const error = { name: 'other', status: 500, detail: '', errors } as const;
  const outcome = outcomeOf({ kind: 'threw', error, log: [] });
  assert.ok(outcome.kind === 'failed');
  assert.equal(outcome.failure.cause?.length, 8_000);
});
