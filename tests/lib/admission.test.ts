/** Fair admission: whoever floods waits, nobody else notices, and what is under way and what waits is bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AdmissionRefusal,
  type AdmittedEntrant,
  FairAdmission,
  type Party,
} from '../../src/lib/admission.ts';
import { nextLook } from '../support/poll.ts';

const nextTurn = () => new Promise((turn) => setImmediate(turn));
/** What waits for room is looked at again after a few milliseconds. */
const retried = async () => {
  for (let look = 0; look < 6; look += 1) await nextLook();
};

function fixture(options: Partial<ConstructorParameters<typeof FairAdmission>[0]> = {}) {
  const time = { now: 1_000 };
  const admission = new FairAdmission({
    now: () => time.now,
    waitMsMax: 10_000,
    limits: {},
    ...options,
  });
  const served: string[] = [];
  const refused: [string, AdmissionRefusal][] = [];
  const underWay: AdmittedEntrant[] = [];
  const enter = (party: Party, name: string, cost = 0) =>
    admission.enter(
      party,
      (admitted) => {
        served.push(name);
        underWay.push(admitted);
        admitted.charge(cost);
      },
      (refusal) => refused.push([name, refusal]),
    );
  const turns = async (count: number, until = () => false) => {
    for (let turn = 0; turn < count && !until(); turn += 1) {
      await nextTurn();
      for (const one of underWay.splice(0)) one.end();
    }
  };
  return { time, admission, served, refused, underWay, enter, turns };
}

test('between two of the flood, each other party that waits is served at least once', async () => {
  const counts = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 6 });
  const property = fc.asyncProperty(
    counts,
    fc.integer({ min: 1, max: 40 }),
    fc.integer({ min: 0, max: 3 }),
    async (others, hostileCost, levels) => {
      const { admission, served, enter, turns } = fixture({ turnCostMax: 1 });
      // However deep in the tree the flood comes from, and however many parties it pretends to be there.
      let above = admission.part(admission.root, 'hostile', {});
      for (let level = 0; level < levels; level += 1) above = admission.part(above, 'below', {});
      const flood = 60;
      for (let at = 0; at < flood; at += 1) {
        const name = `${at % 7}`;
        const party = levels === 0 ? above : admission.part(above, name, {});
        enter(party, 'hostile', hostileCost);
      }
      const begun = served.length;
      let expected = flood;
      others.forEach((count, at) => {
        const party = admission.part(admission.root, `other ${at}`, {});
        for (let one = 0; one < count; one += 1) enter(party, `other ${at}`, 1);
        expected += count;
      });
      await turns(2_000, () => served.length === expected);
      assert.equal(served.length, expected);
      others.forEach((count, at) => {
        const last = served.lastIndexOf(`other ${at}`);
        const ahead = served.slice(0, last).filter((name) => name === 'hostile').length;
        assert.ok(ahead <= begun + count + 2, `${ahead - begun} of the flood before ${count}`);
      });
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('a party has at most so many under way, its parts count with it, and others are not held up', async () => {
  const { admission, served, refused, underWay, enter, turns } = fixture();
  const parent = admission.part(admission.root, 'parent', { underWayMax: 3, waitingMax: 2 });
  const parts = ['a', 'b'].map((name) => admission.part(parent, name, { underWayMax: 2 }));
  for (const part of parts) for (let at = 0; at < 4; at += 1) enter(part, part.name);
  assert.deepEqual(served, ['a', 'a']);
  assert.deepEqual(
    refused.map(([, why]) => why),
    new Array(4).fill('too many wait'),
  );
  enter(admission.part(admission.root, 'other', {}), 'other');
  const held = underWay.splice(0);
  await nextTurn();
  assert.ok(served.includes('other'));
  // Of the two that waited of the first part one made room for the second part.
  assert.deepEqual(served, ['a', 'a', 'b', 'other']);
  assert.equal(parent.underWay, 3);
  for (const one of held) one.end();
  await turns(10);
  assert.equal(served.length, 5);
  assert.equal(parent.underWay, 0);
  assert.equal(admission.root.underWay, 0);
});

test('while a sibling is active a party gets no more than its part, and all of it otherwise', async () => {
  const { time, admission, served, enter, turns } = fixture();
  const part = admission.part(admission.root, 'part', { partMax: 0.25 });
  const sibling = admission.part(admission.root, 'sibling', {});
  for (let at = 0; at < 20; at += 1) enter(part, 'alone', 100);
  assert.equal(served.length, 20);
  await turns(1);
  enter(sibling, 'sibling');
  enter(part, 'beside');
  await turns(3);
  assert.deepEqual(served.slice(20), ['sibling']);
  // The sibling does nothing any more.
  time.now += 1_000;
  enter(part, 'again');
  await turns(3);
  assert.deepEqual(served.slice(21), ['beside', 'again']);
});

test('what waits too long is refused, what was withdrawn is neither begun nor refused', async () => {
  const { time, admission, served, refused, underWay, enter, turns } = fixture();
  const party = admission.part(admission.root, 'party', { underWayMax: 1 });
  enter(party, 'first');
  const [first] = underWay.splice(0);
  const withdraw = enter(party, 'withdrawn');
  enter(party, 'late');
  time.now += 9_999;
  enter(party, 'third');
  withdraw();
  time.now += 1;
  await turns(2);
  assert.deepEqual(refused, [['late', 'waited too long']]);
  first?.end();
  await turns(3);
  assert.deepEqual(served, ['first', 'third']);
  assert.equal(admission.waiting, 0);
});

test('what is under way goes on where its party is full, and what it holds is given back', async () => {
  const { admission, underWay, enter, turns } = fixture({ turnCostMax: 0.01 });
  const party = admission.part(admission.root, 'party', { underWayMax: 1, heldMax: 10 });
  enter(party, 'first');
  const [first] = underWay.splice(0);
  assert.ok(first);
  assert.equal(first.hold(10), true);
  assert.equal(first.hold(1), false);
  enter(party, 'second');
  assert.equal(await first.next(), undefined);
  assert.deepEqual([party.held, admission.root.held], [10, 10]);
  const other = admission.part(admission.root, 'other', {});
  first.move(other);
  assert.deepEqual([party.held, other.held, party.underWay, other.underWay], [0, 10, 0, 1]);
  first.end();
  first.end();
  await turns(3);
  assert.deepEqual([admission.root.held, admission.root.underWay], [0, 0]);
});

test('what waits for its next turn is freed when its client leaves', async () => {
  const { admission, underWay, refused, enter, turns } = fixture({ turnCostMax: 0.01 });
  const party = admission.part(admission.root, 'party', { waitingMax: 2 });
  enter(party, 'first');
  const [first] = underWay.splice(0);
  enter(party, 'second');
  const next = first?.next();
  assert.equal(admission.waiting, 2);
  first?.withdraw();
  assert.equal(await next, 'ended');
  assert.equal(admission.waiting, 1);
  assert.equal(await first?.next(), 'ended');
  await turns(3);
  assert.deepEqual(refused, []);
});

test('of thousands of parties each is served before any is served twice', async () => {
  const { admission, served, enter, turns } = fixture({ turnCostMax: 1 });
  const count = 2_000;
  enter(admission.root, 'first', 1);
  enter(admission.root, 'second', 1);
  for (let at = 0; at < count; at += 1) {
    const party = admission.part(admission.root, `${at}`, {});
    enter(party, `${at}`);
    enter(party, `${at}`);
  }
  await turns(5_000, () => served.length > count);
  // Some begin before any waits.
  const twice = count - new Set(served.slice(0, count)).size;
  assert.ok(twice <= 20, `${twice} served twice`);
});

test('parties beyond those that are known apart share one, and idle ones are forgotten', () => {
  const { time, admission } = fixture({ partiesMax: 10 });
  const names = Array.from({ length: 20 }, (_, at) => `${at}`);
  const parties = new Set(names.map((name) => admission.part(admission.root, name, {})));
  // Nine beside the root, and the one that the others share.
  assert.equal(parties.size, 10);
  assert.equal(admission.part(admission.root, '99', {}).name, 'others');
  time.now += 2_000;
  assert.equal(admission.part(admission.root, '99', {}).name, '99');
});

/** Parties that share a parent, some of whose entrants wait for slow clients. */
function slowFixture(limits: ConstructorParameters<typeof FairAdmission>[0]['limits']) {
  const { time, admission, served, refused, underWay, enter } = fixture();
  const parent = admission.part(admission.root, 'visitors', { ...limits, partMax: 0.25 });
  const partOf = (name: string) => admission.part(parent, name, {});
  const cut: string[] = [];
  /** Enters, and holds so much for a client that is slow or not. */
  const hold = (name: string, amount: number, isSlow = true) => {
    enter(partOf(name), name);
    const admitted = underWay.pop();
    if (!admitted) return;
    admitted.slow = { isSlow: () => isSlow, cut: () => cut.push(name) };
    admitted.hold(amount, false);
  };
  return { time, admission, parent, served, refused, underWay, enter, partOf, hold, cut };
}

for (const [what, limits] of [
  ['bytes', { heldMax: 100 }],
  ['slots', { underWayMax: 5 }],
] as const) {
  test(`slow clients of whoever has most give up ${what} for a party that has less`, async () => {
    const { time, served, enter, partOf, hold, cut } = slowFixture(limits);
    hold('few', 22);
    for (let at = 0; at < 4; at += 1) hold('most', 22);
    assert.deepEqual(cut, []);
    enter(partOf('new'), 'new');
    await nextTurn();
    assert.ok(!served.includes('new'), 'a client that has just begun is not slow');
    time.now += 600;
    await retried();
    assert.deepEqual(cut, ['most']);
    assert.ok(served.includes('new'));
  });
}

test('what is worked on is not ended for others, nor what no more is held by than by them', async () => {
  const { time, served, enter, partOf, hold, cut } = slowFixture({ underWayMax: 4 });
  for (let at = 0; at < 3; at += 1) hold('busy', 1, false);
  hold('slow', 1);
  time.now += 600;
  enter(partOf('slow'), 'slow again');
  await retried();
  assert.deepEqual(cut, []);
  assert.ok(!served.includes('slow again'));
});

test('whoever holds less has room for a body that is arriving, and nobody from outside their part', () => {
  const { time, admission, underWay, enter, partOf, hold, cut } = slowFixture({ heldMax: 100 });
  const server = admission.part(admission.root, 'server', {});
  enter(server, 'server');
  const [served] = underWay.splice(0);
  assert.ok(served);
  served.slow = { isSlow: () => true, cut: () => cut.push('server') };
  served.hold(1_000);
  for (let at = 0; at < 4; at += 1) hold('most', 24);
  time.now += 600;
  enter(partOf('new'), 'new');
  const [admitted] = underWay.splice(0);
  assert.equal(admitted?.hold(10), true);
  assert.deepEqual(cut, ['most']);
  assert.equal(admitted?.hold(101), false);
});

test('those who have a part at most make room for the others first', async () => {
  const { time, admission, served, underWay, enter } = fixture({ limits: { heldMax: 100 } });
  const cut: string[] = [];
  const visitors = admission.part(admission.root, 'visitors', { partMax: 0.25 });
  const servers = admission.part(admission.root, 'servers', {});
  for (const [name, parent] of [
    ['visitor', visitors],
    ['server', servers],
  ] as const) {
    enter(admission.part(parent, name, {}), name);
    const admitted = underWay.pop();
    assert.ok(admitted);
    admitted.slow = { isSlow: () => true, cut: () => cut.push(name) };
    admitted.hold(name === 'visitor' ? 20 : 90, false);
  }
  time.now += 600;
  enter(admission.part(servers, 'other', {}), 'other');
  await retried();
  assert.deepEqual(cut, ['visitor']);
  assert.ok(served.includes('other'));
});

test('where too many wait, those of whom most wait are refused, and nobody else', () => {
  const { refused, enter, partOf, parent } = slowFixture({ underWayMax: 0, waitingMax: 6 });
  for (let at = 0; at < 5; at += 1) enter(partOf('many'), `many ${at}`);
  for (const name of ['one', 'two', 'three']) enter(partOf(name), name);
  assert.deepEqual(
    refused,
    ['many 0', 'many 1'].map((name) => [name, 'too many wait']),
  );
  assert.equal(parent.waiting, 6);
});
