/** Attempts under way together: tenants whose attempts hang leave room for the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantId } from '../../src/base/ids.ts';
import { type AttemptLimits, createSlots } from '../../src/queue/slots.ts';

const slow = 'slow' as TenantId;
const other = 'other' as TenantId;

/** Lanes of a tenant, each of which takes what it gets and waits for more until it has that many. */
function start(limits: AttemptLimits) {
  const slots = createSlots(limits);
  const got: string[] = [];
  const held: { readonly tenant: TenantId; readonly free: () => void }[] = [];
  return {
    got,
    wants: (tenant: TenantId, name: string, max: number) => {
      let left = max;
      const want = () => {
        if (left === 0) return;
        slots.enter(tenant, (free) => {
          left--;
          got.push(name);
          held.push({ tenant, free });
          want();
        });
      };
      want();
    },
    /** Frees the slot that the tenant has held for longest, and lets what waits begin. */
    free: async (tenant: TenantId) => {
      const at = held.findIndex((one) => one.tenant === tenant);
      assert.ok(at >= 0);
      for (const { free } of held.splice(at, 1)) free();
      await new Promise(setImmediate);
    },
    turn: () => new Promise(setImmediate),
  };
}

test('a tenant with 20 lanes that hang takes no more than its share, and others the rest', async () => {
  const { got, wants, turn } = start({ allMax: 10, tenantMax: 6 });
  for (let count = 0; count < 20; count++) wants(slow, `slow ${count}`, 4);
  await turn();
  assert.equal(got.length, 6);
  wants(other, 'other', 4);
  await turn();
  assert.equal(got.filter((name) => name === 'other').length, 4);
});

test('of tenants that wait the one with the fewest under way is next, and of its lanes the first', async () => {
  const { got, wants, free } = start({ allMax: 4, tenantMax: 4 });
  wants(slow, 'first', 5);
  wants(slow, 'second', 5);
  wants(other, 'other', 2);
  assert.deepEqual(got.splice(0), ['first', 'first', 'first', 'first']);
  for (let count = 0; count < 4; count++) await free(slow);
  assert.deepEqual(got.splice(0), ['other', 'other', 'first', 'second']);
});

test('slots for first attempts are left to tenants without any', async () => {
  const { got, wants, free } = start({ allMax: 4, tenantMax: 2, forFirstMin: 3 });
  wants(slow, 'slow', 2);
  wants(other, 'other', 2);
  wants('third' as TenantId, 'third', 1);
  await new Promise(setImmediate);
  assert.deepEqual(got.splice(0), ['slow', 'slow', 'other', 'third']);
  await free(slow);
  await free(slow);
  assert.deepEqual(got.splice(0), ['other']);
});

test('what is withdrawn while it waits gets no slot', async () => {
  const slots = createSlots({ allMax: 1, tenantMax: 1 });
  let end = () => {};
  slots.enter(slow, (free) => {
    end = free;
  });
  const withdraw = slots.enter(other, () => assert.fail('it was withdrawn'));
  withdraw();
  const next = Promise.withResolvers<void>();
  slots.enter(slow, () => next.resolve());
  end();
  await next.promise;
});
