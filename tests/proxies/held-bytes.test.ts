/** The memory for bodies of proxy calls: bounded for a tenant and for all, and free again after each call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHeldBytes } from '../../src/proxies/calls/held-bytes.ts';

test('a tenant and all together have a limit, and what is released can be held again', () => {
  const shareOf = createHeldBytes({ ofAll: 10, ofPartition: 6 });
  const [first, second, third] = [shareOf('a'), shareOf('a'), shareOf('b')];
  first.hold(4);
  second.hold(2);
  assert.throws(() => second.hold(1), { code: 'overloaded' });
  third.hold(4);
  assert.throws(() => third.hold(1), { code: 'overloaded' });
  first.release();
  first.release();
  third.hold(2);
  second.hold(2);
  assert.throws(() => second.hold(1), { code: 'overloaded' });
  assert.throws(() => first.hold(0), { code: 'overloaded' });
});
