/** Attempts under way together: tenants whose receivers hang leave room for the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantId } from '../../src/base/ids.ts';
import { createAttemptSlots } from '../../src/webhooks/deliveries/attempt-slots.ts';

const slow = 'slow' as TenantId;
const other = 'other' as TenantId;
const nobody = () => assert.fail('nobody waits');

/** Webhooks of a tenant, each of which takes what it gets and waits for more until it has that many. */
function start(slots: ReturnType<typeof createAttemptSlots>) {
  const got: string[] = [];
  return {
    got,
    wants: (tenant: TenantId, name: string, max: number) => {
      let left = max;
      const pump = () => {
        while (left > 0) {
          if (!slots.take(tenant, pump)) return;
          left--;
          got.push(name);
        }
      };
      pump();
    },
  };
}

test('a tenant with 20 webhooks that hang takes no more than its share, and others the rest', () => {
  const slots = createAttemptSlots({ allMax: 10, tenantMax: 6 });
  const { got, wants } = start(slots);
  for (let count = 0; count < 20; count++) wants(slow, `slow ${count}`, 4);
  assert.deepEqual([got.length, new Set(got).size], [6, 2]);
  wants(other, 'other', 4);
  assert.equal(got.filter((name) => name === 'other').length, 4);
});

test('of tenants that wait the one with the fewest under way is next, and of its webhooks the first', () => {
  const slots = createAttemptSlots({ allMax: 4, tenantMax: 4 });
  const { got, wants } = start(slots);
  wants(slow, 'first', 5);
  wants(slow, 'second', 5);
  wants(other, 'other', 2);
  assert.deepEqual(got.splice(0), ['first', 'first', 'first', 'first']);
  for (let count = 0; count < 4; count++) slots.free(slow);
  assert.deepEqual(got.splice(0), ['other', 'other', 'first', 'second']);
});

test('what is free again goes to somebody at once, also where the first to wait needs nothing more', () => {
  const slots = createAttemptSlots({ allMax: 1, tenantMax: 1 });
  const { got, wants } = start(slots);
  assert.ok(slots.take(slow, nobody));
  assert.equal(
    slots.take(other, () => undefined),
    false,
  );
  wants(slow, 'next', 1);
  slots.free(slow);
  assert.deepEqual(got, ['next']);
});
