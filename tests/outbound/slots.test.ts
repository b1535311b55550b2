/** The number of requests under way: its limits by destination, by partition and in total. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Slot, Slots } from '../../src/outbound/slots.ts';

const nextTurn = () => new Promise((turn) => setImmediate(turn));

const limits = {
  destinationMax: 2,
  partitionMax: 3,
  totalMax: 4,
  waitingMax: 5,
  waitingOfPartitionMax: 3,
};

function taking(of = limits) {
  const time = { now: 1_000 };
  const slots = new Slots(of, () => time.now);
  const granted: string[] = [];
  const held: { readonly name: string; readonly slot: Slot }[] = [];
  const take = async (name: string, signal = new AbortController().signal) => {
    const [partition = '', host = ''] = name.split(' ');
    const limit = { signal, throwIfOver: () => signal.throwIfAborted() };
    const slot = await slots.take({ partition, destination: `${partition} ${host}`, limit });
    granted.push(name);
    held.push({ name, slot });
    return slot.free;
  };
  return { granted, held, time, take };
}

/** Waiting requests are admitted in a later turn of the event loop. */
const turns = async () => {
  for (let count = 0; count < 3; count += 1) await nextTurn();
};

test('a destination, a partition and the whole each have their limit', async () => {
  for (const [names, last] of [
    [['a x', 'a x'], 'a x'],
    [['a x', 'a y', 'a z'], 'a w'],
    [['a x', 'b x', 'c x', 'd x'], 'e x'],
  ] as const) {
    const { granted, take } = taking();
    const releases = await Promise.all(names.map((name) => take(name)));
    const waiting = take(last);
    await turns();
    assert.deepEqual(granted, names);
    releases[0]?.();
    await waiting;
    assert.deepEqual(granted, [...names, last]);
  }
});

test('the request that waits longest goes first, and a full destination delays no other', async () => {
  const { granted, take } = taking();
  const [release] = [await take('a x'), await take('a x')];
  const waiting = [take('a x'), take('a x'), take('b y')];
  await turns();
  assert.deepEqual(granted, ['a x', 'a x', 'b y']);
  release();
  await waiting[0];
  await turns();
  assert.equal(granted.length, 4);
});

test('who holds the fewest slots goes first, so nobody who holds many keeps out others', async () => {
  const { granted, take } = taking();
  const [release] = [await take('a x'), await take('a y'), await take('a z'), await take('b x')];
  const waiting = [take('a w'), take('b y'), take('c x')];
  await turns();
  release();
  await turns();
  assert.deepEqual(granted.slice(4), ['c x']);
  (await waiting[2])?.();
  await turns();
  assert.deepEqual(granted.slice(5), ['b y']);
});

test('partitions that hold all they can get, forever, leave slots for others', async () => {
  const large = { ...limits, destinationMax: 64, partitionMax: 64, totalMax: 128, waitingMax: 512 };
  const { granted, take } = taking({ ...large, waitingOfPartitionMax: 128 });
  const greedy = ['a', 'b', 'c'];
  for (const name of [...greedy, ...greedy]) {
    for (let count = 0; count < 64; count += 1) void take(`${name} x`);
    await turns();
  }
  const taken = (name: string) => granted.filter((one) => one.startsWith(name)).length;
  assert.equal(taken('a'), 64);
  await Promise.all(Array.from({ length: 4 }, () => take('d x')));
  assert.equal(taken('d'), 4);
});

test('a request that is given up while it waits takes no slot', async () => {
  const { granted, take } = taking();
  const [release] = [await take('a x'), await take('a x')];
  const caller = new AbortController();
  const reason = new Error('gone');
  const waiting = take('a x', caller.signal);
  caller.abort(reason);
  await assert.rejects(waiting, reason);
  await assert.rejects(take('b x', caller.signal), reason);
  release();
  await take('a x');
  assert.equal(granted.length, 3);
});

test('no more wait than the limits say, and where too many do, one of those of whom most wait is refused', async () => {
  const { granted, take } = taking();
  const releases = [await take('a x'), await take('a x'), await take('b y'), await take('b y')];
  const caller = new AbortController();
  const waiting = [take('a x'), take('a x'), take('a x', caller.signal)];
  await assert.rejects(take('a x'), { name: 'OutboundError', reason: 'busy' });
  const others = [take('b y'), take('b y'), take('c x')];
  await assert.rejects(waiting.shift() as Promise<unknown>, { reason: 'busy' });
  caller.abort(new Error('gone'));
  await assert.rejects(waiting.pop() as Promise<unknown>, /gone/);
  for (const release of releases) release();
  for (const one of [...others, ...waiting]) (await one)();
  assert.equal(granted.length, 8);
  await Promise.all([take('a x'), take('a x')]);
});

/** A stream that only waits for its host and its client. */
const slow = { isWaitedFor: () => true, bytesMoved: () => 0 };

test('slots that slow streams of many partitions hold are taken back for one that holds fewer', async () => {
  const { held, time, take } = taking({ ...limits, partitionMax: 4, destinationMax: 4 });
  for (const name of ['a x', 'a y', 'b x', 'b y']) await take(name);
  const cut: string[] = [];
  for (const { name, slot } of held) {
    slot.watch({
      ...slow,
      cut: () => {
        cut.push(name);
        slot.free();
      },
    });
  }
  time.now += 1_000;
  await take('c x');
  assert.equal(cut.length, 1);
  time.now += 1_000;
  await take('d x');
  assert.equal(cut.length, 2);
  const [first, second] = cut.map(([partition]) => partition);
  assert.notEqual(first, second, 'one of each');
});

test('a request whose host has not responded yet is not cut, because its effect is not known', async () => {
  const { held, granted, time, take } = taking({ ...limits, partitionMax: 4, destinationMax: 4 });
  for (const name of ['a x', 'a x', 'a x', 'a x']) await take(name);
  const cut = () => assert.fail('cut');
  for (const { slot } of held) slot.watch({ ...slow, isWaitedFor: () => false, cut });
  time.now += 10_000;
  const waiting = take('b x');
  await turns();
  assert.equal(granted.length, 4);
  held[0]?.slot.free();
  await waiting;
});
