/** Processor time of TLS handshakes: who takes it, who rests for it, and which hosts are not called for a while. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Clock, Instant } from '../../src/base/clock.ts';
import { failuresMax, pauseMs } from '../../src/outbound/breaker.ts';
import { Handshakes } from '../../src/outbound/handshakes.ts';

const newTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Handshakes of hosts that cost as much as a test says. */
function handshaking(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const time = { used: 0, now: 1_000_000 };
  const clock: Clock = { now: () => time.now as Instant };
  const handshakes = new Handshakes({ clock, processorMs: () => time.used });
  const done: string[] = [];
  const take = (party: string, { costMs, host = 'a' }: { costMs: number; host?: string }) =>
    handshakes.begin({ party, destination: `${party} ${host}` }).take(() => {
      time.used += costMs;
      done.push(party);
    });
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    // A turn of the event loop begins the next step.
    for (let turn = 0; turn < 5; turn += 1) await newTurn();
  };
  return { handshakes, done, take, pass, time };
}

test('after an expensive step a party rests for many times its cost, and no other party does', async (t) => {
  const { done, take, pass } = handshaking(t);
  for (let count = 0; count < 12; count += 1) take('hostile', { costMs: 100, host: `${count}` });
  await pass(0);
  assert.deepEqual(done, ['hostile']);
  take('other', { costMs: 1 });
  take('other', { costMs: 1 });
  await pass(0);
  assert.deepEqual(done, ['hostile', 'other', 'other']);
  await pass(3_999);
  assert.equal(done.length, 3);
  await pass(1);
  assert.equal(done.length, 4);
});

test('usual handshakes of a party go on without a rest worth naming', async (t) => {
  const { done, take, pass } = handshaking(t);
  for (let count = 0; count < 20; count += 1) take('usual', { costMs: 2 });
  for (let count = 0; count < 20; count += 1) await pass(2);
  assert.equal(done.length, 20);
});

test('a step that is withdrawn while its party rests is never taken', async (t) => {
  const { done, take, pass } = handshaking(t);
  take('hostile', { costMs: 100 });
  const withdraw = take('hostile', { costMs: 100 });
  withdraw();
  await pass(60_000);
  assert.deepEqual(done, ['hostile']);
});

test('a destination with expensive handshakes in a row is not called for a while, and others are', async (t) => {
  const { handshakes, take, pass, time } = handshaking(t);
  for (let count = 0; count < failuresMax; count += 1) {
    handshakes.requireAffordable('hostile a');
    take('hostile', { costMs: 100 });
    await pass(4_000);
  }
  const refused = { name: 'OutboundError', reason: 'expensive_tls' };
  assert.throws(() => handshakes.requireAffordable('hostile a'), refused);
  handshakes.requireAffordable('hostile b');
  time.now += pauseMs;
  handshakes.requireAffordable('hostile a');
  assert.throws(() => handshakes.requireAffordable('hostile a'), refused);
  handshakes.begin({ party: 'hostile', destination: 'hostile a' }).succeeded();
  handshakes.requireAffordable('hostile a');
});
