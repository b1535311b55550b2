/** The number of requests under way: its limits by destination, by partition and in total. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots } from '../../src/outbound/slots.ts';

const limits = {
  destinationMax: 2,
  partitionMax: 3,
  totalMax: 4,
  waitingMax: 5,
  waitingOfPartitionMax: 3,
};

function taking(of = limits) {
  const slots = new Slots(of);
  const granted: string[] = [];
  const take = async (name: string, signal = new AbortController().signal) => {
    const [partition = '', host = ''] = name.split(' ');
    const limit = { signal, throwIfOver: () => signal.throwIfAborted() };
    const release = await slots.take({ partition, destination: `${partition} ${host}`, limit });
    granted.push(name);
    return release;
  };
  return { granted, take };
}

const microtasks = async () => {
  for (let count = 0; count < 10; count += 1) await undefined;
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
    await microtasks();
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
  await microtasks();
  assert.deepEqual(granted, ['a x', 'a x', 'b y']);
  release();
  await waiting[0];
  await microtasks();
  assert.equal(granted.length, 4);
});

test('who holds the fewest slots goes first, so nobody who holds many keeps out others', async () => {
  const { granted, take } = taking();
  const [release] = [await take('a x'), await take('a y'), await take('a z'), await take('b x')];
  const waiting = [take('a w'), take('b y'), take('c x')];
  await microtasks();
  release();
  await microtasks();
  assert.deepEqual(granted.slice(4), ['c x']);
  (await waiting[2])?.();
  await microtasks();
  assert.deepEqual(granted.slice(5), ['b y']);
});

test('partitions that hold all they can get, forever, leave slots for others', async () => {
  const large = { ...limits, destinationMax: 64, partitionMax: 64, totalMax: 128, waitingMax: 512 };
  const { granted, take } = taking({ ...large, waitingOfPartitionMax: 128 });
  const greedy = ['a', 'b', 'c'];
  for (const name of [...greedy, ...greedy]) {
    for (let count = 0; count < 64; count += 1) void take(`${name} x`);
    await microtasks();
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

test('no more wait than the limits say, and whoever leaves makes room', async () => {
  const { granted, take } = taking();
  const releases = [await take('a x'), await take('a x'), await take('b y'), await take('b y')];
  const caller = new AbortController();
  const waiting = [take('a x'), take('a x'), take('a x', caller.signal)];
  await assert.rejects(take('a z'), { name: 'OutboundError', reason: 'busy' });
  const others = [take('b y'), take('b y')];
  await assert.rejects(take('c x'), { reason: 'busy' });
  const [, , leaving] = waiting;
  caller.abort(new Error('gone'));
  await assert.rejects(leaving as Promise<unknown>, /gone/);
  others.push(take('c x'));
  await assert.rejects(take('b y'), { reason: 'busy' });
  for (const release of releases) release();
  for (const one of [...waiting.slice(0, 2), ...others]) (await one)();
  assert.equal(granted.length, 9);
  await Promise.all([take('a x'), take('a x')]);
});
