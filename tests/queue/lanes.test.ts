/** Lanes of a queue: nothing that is due is forgotten, and what fails is retried after a growing pause. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TenantId } from '../../src/base/ids.ts';
import { createLane, createLanes, failurePauses, type LaneWork } from '../../src/queue/lanes.ts';
import { createSlots } from '../../src/queue/slots.ts';
import { createStillClock } from '../support/vault.ts';

const tenant = 'tenant' as TenantId;

function start(lane: Partial<LaneWork> & Pick<LaneWork, 'claim'>) {
  const clock = createStillClock();
  const failures: unknown[] = [];
  const slots = createSlots({ allMax: 10, tenantMax: 10 });
  const tools = { clock, slots, onFailure: (error: unknown) => failures.push(error) };
  return {
    clock,
    failures,
    tools,
    lane: createLane(tools, { tenant, atOnceMax: () => 4, ...lane }),
  };
}

test('a lane attempts everything that is due, no more at once than it may', async () => {
  let due = 20;
  let underWay = 0;
  let most = 0;
  const { lane } = start({
    claim: () => {
      if (due === 0) return undefined;
      due -= 1;
      return async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        await new Promise(setImmediate);
        underWay -= 1;
        return undefined;
      };
    },
  });
  lane.wake();
  await lane.idle();
  assert.deepEqual([due, most], [0, 4]);
});

test('work that becomes due while a claim finds nothing is not forgotten', async () => {
  const claimed = Promise.withResolvers<void>();
  let claims = 0;
  let attempts = 0;
  const { lane } = start({
    atOnceMax: () => 1,
    claim: async () => {
      claims += 1;
      if (claims === 1) return claimed.promise.then(() => undefined);
      if (claims > 2) return undefined;
      return async () => {
        attempts += 1;
        return undefined;
      };
    },
  });
  lane.wake();
  lane.wake();
  claimed.resolve();
  await lane.idle();
  assert.equal(attempts, 1);
});

test('after a failure a lane rests, twice as long each time, until an attempt succeeds', async () => {
  let isBroken = true;
  let isDue = true;
  const { lane, clock, failures } = start({
    atOnceMax: () => 1,
    claim: () => {
      if (isBroken) throw new Error('the vault itself failed');
      if (!isDue) return undefined;
      isDue = false;
      return async () => undefined;
    },
  });
  const wake = async () => {
    lane.wake();
    await lane.idle();
    return failures.length;
  };
  const { firstMs } = failurePauses;
  assert.equal(await wake(), 1);
  clock.advance(firstMs - 1);
  assert.equal(await wake(), 1);
  clock.advance(1);
  assert.equal(await wake(), 2);
  clock.advance(2 * firstMs - 1);
  assert.equal(await wake(), 2);
  clock.advance(1);
  isBroken = false;
  assert.equal(await wake(), 2);
  assert.ok(!isDue && !lane.isResting);
  isBroken = true;
  assert.equal(await wake(), 3);
  clock.advance(firstMs);
  assert.equal(await wake(), 4);
});

test('a lane rests no longer than until a clock that was set back', async () => {
  const { lane, clock, failures } = start({
    claim: () => {
      throw new Error('the vault itself failed');
    },
    atOnceMax: () => 1,
  });
  lane.wake();
  await lane.idle();
  clock.advance(-60_000);
  lane.wake();
  await lane.idle();
  assert.equal(failures.length, 2);
});

test('a stop waits until what was attempted is recorded, and begins nothing else', async () => {
  const sent = Promise.withResolvers<void>();
  const recorded: number[] = [];
  let claims = 0;
  const { tools } = start({ claim: () => undefined });
  const lanes = createLanes();
  const make = (onIdle: () => void) =>
    createLane(
      tools,
      {
        tenant,
        atOnceMax: () => 1,
        claim: () => async () => {
          claims += 1;
          await sent.promise;
          return {
            conclude: async () => {
              await new Promise(setImmediate);
              recorded.push(claims);
            },
          };
        },
      },
      onIdle,
    );
  lanes.wake('a lane', make);
  const stopped = lanes.stop();
  sent.resolve();
  await stopped;
  assert.deepEqual([claims, recorded], [1, [1]]);
  lanes.wake('a lane', make);
  await new Promise(setImmediate);
  assert.equal(claims, 1);
});

test('what was postponed is claimed again after a rest, and is no failure', async () => {
  let claims = 0;
  const { lane, clock, failures } = start({
    atOnceMax: () => 1,
    claim: () => {
      claims += 1;
      return async () => ({ isPostponed: true });
    },
  });
  lane.wake();
  await lane.idle();
  assert.deepEqual([claims, failures.length], [1, 0]);
  clock.advance(failurePauses.maxMs);
  lane.wake();
  await lane.idle();
  assert.equal(claims, 2);
});
