/** The memory for bodies of proxy calls: bounded for a tenant and for all, and free again after each call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHeldBytes } from '../../src/proxies/calls/held-bytes.ts';

test('a tenant and all together have a limit, and what is released can be held again', () => {
  const shareOf = createHeldBytes({ ofAll: 16, ofPartition: 6 });
  const [first, second, third] = [shareOf('a'), shareOf('a'), shareOf('b')];
  first.hold(4);
  second.hold(2);
  assert.throws(() => second.hold(1), { code: 'overloaded' });
  third.hold(5);
  assert.throws(() => third.hold(1), { code: 'overloaded' });
  first.release();
  first.release();
  third.hold(1);
  second.hold(2);
  assert.throws(() => first.hold(0), { code: 'overloaded' });
});

test('however many tenants hold as much as they may, another one has room', () => {
  const shareOf = createHeldBytes({ ofAll: 1_024, ofPartition: 256 });
  for (let tenant = 0; tenant < 8; tenant += 1) {
    const share = shareOf(`${tenant}`);
    assert.throws(() => {
      for (;;) share.hold(1);
    });
  }
  shareOf('other').hold(2);
});
