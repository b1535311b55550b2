/** Where shared room is used up, slow clients of the party that has most give it back, and honest ones keep theirs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AdmittedEntrant, FairAdmission, type PartyLimits } from '../../src/base/admission.ts';
import { SlowClients, type Watched } from '../../src/base/slow-clients.ts';
import { nextLook } from '../support/poll.ts';

/** What waits for room is looked at again after a few milliseconds. */
const retried = async () => {
  for (let look = 0; look < 6; look += 1) await nextLook();
};

interface Holding {
  readonly amount: number;
  readonly isSlow?: boolean;
  readonly bytesMoved?: number;
  /** Whether its work ends as soon as its client is cut. */
  readonly endsAtOnce?: boolean;
}

/** Parties that share a parent, which has a part of all time. */
function fixture(limits: PartyLimits, rootLimits: PartyLimits = {}) {
  const time = { now: 1_000 };
  const slowClients = new SlowClients(() => time.now);
  const admission = new FairAdmission({
    now: () => time.now,
    waitMsMax: 10_000,
    limits: rootLimits,
    reclaim: slowClients.reclaim,
  });
  const visitors = admission.part(admission.root, 'visitors', { ...limits, partMax: 0.25 });
  const servers = admission.part(admission.root, 'servers', {});
  const served: string[] = [];
  const cut: string[] = [];
  const admitted: AdmittedEntrant[] = [];
  const enter = (name: string, parent = visitors) =>
    admission.enter(admission.part(parent, name, {}), {
      begin: (one) => {
        served.push(name);
        admitted.push(one);
      },
      refuse: () => undefined,
    });
  /** Enters, and holds so much for a client. */
  const hold = (name: string, holding: Holding, parent = visitors): AdmittedEntrant => {
    const { amount, isSlow = true, bytesMoved = 0, endsAtOnce = true } = holding;
    enter(name, parent);
    const one = admitted.pop();
    assert.ok(one);
    const watched: Watched = slowClients.watch(one, {
      isWaitedFor: () => isSlow,
      bytesMoved: () => bytesMoved,
      cut: () => {
        cut.push(name);
        if (!endsAtOnce) return;
        slowClients.unwatch(watched);
        one.end();
      },
    });
    one.hold(amount, false);
    return one;
  };
  return { time, admission, visitors, servers, served, cut, admitted, enter, hold };
}

for (const [what, limits] of [
  ['bytes', { heldMax: 100 }],
  ['slots', { underWayMax: 5 }],
] as const) {
  test(`slow clients of the party that has most give up ${what} for a party that has less`, async () => {
    const { time, served, enter, hold, cut } = fixture(limits);
    hold('few', { amount: 22 });
    for (let at = 0; at < 4; at += 1) hold('most', { amount: 22 });
    assert.deepEqual(cut, []);
    enter('new');
    await retried();
    assert.ok(!served.includes('new'), 'a client that has just begun is not slow');
    time.now += 600;
    await retried();
    assert.deepEqual(cut, ['most']);
    assert.ok(served.includes('new'));
  });
}

test('what is worked on is not ended for others, nor by a party that has as much', async () => {
  const { time, served, enter, hold, cut } = fixture({ underWayMax: 4 });
  for (let at = 0; at < 3; at += 1) hold('busy', { amount: 1, isSlow: false });
  hold('slow', { amount: 1 });
  time.now += 600;
  enter('slow');
  await retried();
  assert.deepEqual(cut, []);
  assert.deepEqual(served.length, 4);
});

test('of a party those that progress least are cut', async () => {
  const { time, enter, hold, cut, admitted } = fixture({ underWayMax: 3 });
  const progressing = hold('most', { amount: 1, bytesMoved: 100_000 });
  hold('most', { amount: 1, bytesMoved: 10 });
  hold('most', { amount: 1, bytesMoved: 100_000 });
  time.now += 600;
  enter('new');
  await retried();
  assert.deepEqual(cut, ['most']);
  assert.equal(admitted.length, 1);
  assert.equal(progressing.hold(1), true);
  assert.equal(progressing.held, 2);
});

for (const what of ['bytes', 'slots'] as const) {
  test(`an upload that progresses keeps its ${what} beside strangers, unless its party has much more`, async () => {
    const uploads = 4;
    const limits = what === 'slots' ? { underWayMax: uploads + 6 } : { heldMax: 100 };
    const { time, served, enter, hold, cut } = fixture(limits);
    const progress = { amount: 10, bytesMoved: 1_000_000 };
    for (let at = 0; at < uploads; at += 1) hold(`honest ${at}`, progress);
    for (let at = 0; at < 6; at += 1) hold('hostile', { ...progress, amount: 11 });
    time.now += 1_000;
    for (let at = 0; at < 5; at += 1) enter(`stranger ${at}`);
    for (let look = 0; look < 5; look += 1) {
      time.now += 30;
      await retried();
    }
    assert.ok(cut.length > 0 && cut.every((name) => name === 'hostile'), cut.join());
    assert.ok(served.some((name) => name.startsWith('stranger')));
  });
}

test('a request that was cut keeps its slot, and is charged, until its work has ended', async () => {
  const { time, admission, visitors, served, enter, hold, cut } = fixture({ underWayMax: 2 });
  const first = hold('most', { amount: 5, endsAtOnce: false });
  hold('most', { amount: 5, endsAtOnce: false });
  time.now += 600;
  enter('new');
  for (let look = 0; look < 5; look += 1) {
    time.now += 30;
    await retried();
  }
  // No second one is cut for the same room.
  assert.deepEqual(cut, ['most']);
  assert.ok(!served.includes('new'));
  assert.deepEqual([visitors.underWay, visitors.held], [2, 5]);
  const before = admission.usedBy(first.party);
  first.charge(50);
  assert.ok(admission.usedBy(first.party) > before + 40);
  first.end();
  await retried();
  assert.ok(served.includes('new'));
});

test('a body that arrives has room where its party holds less, and takes none from another part', () => {
  const { time, servers, admitted, enter, hold, cut } = fixture({ heldMax: 100 });
  hold('server', { amount: 1_000 }, servers);
  for (let at = 0; at < 4; at += 1) hold('most', { amount: 24 });
  time.now += 600;
  enter('new');
  const one = admitted.pop();
  assert.equal(one?.hold(10), true);
  assert.deepEqual(cut, ['most']);
  assert.equal(one?.hold(101), false);
});

test('parties that are limited to a part make room for the others first', async () => {
  const { time, servers, served, enter, hold, cut } = fixture({}, { heldMax: 100 });
  hold('visitor', { amount: 20 });
  hold('server', { amount: 90 }, servers);
  time.now += 600;
  enter('other', servers);
  await retried();
  assert.deepEqual(cut, ['visitor']);
  assert.ok(served.includes('other'));
});
