/** Fair admission: whoever floods waits, nobody else notices, and what is under way and what waits is bounded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type AdmissionRefusal,
  type AdmittedEntrant,
  FairAdmission,
  type Party,
} from '../../src/base/admission.ts';

const nextTurn = () => new Promise((turn) => setImmediate(turn));
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
    admission.enter(party, {
      begin: (admitted) => {
        served.push(name);
        underWay.push(admitted);
        admitted.charge(cost);
      },
      refuse: (refusal) => refused.push([name, refusal]),
    });
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
  assert.deepEqual(served, ['a', 'a', 'other', 'b']);
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

test('a request that ends late takes nothing from what others have used, and pays for late work', () => {
  const { time, admission, underWay, enter } = fixture();
  const parent = admission.part(admission.root, 'parent', {});
  const [slow, busy] = ['slow', 'busy'].map((name) => admission.part(parent, name, {}));
  assert.ok(slow && busy);
  for (let at = 0; at < 20; at += 1) {
    enter(slow, 'expensive', 50);
    underWay.pop()?.end();
  }
  time.now += 10_000;
  for (let at = 0; at < 11; at += 1) enter(slow, 'waits for its client');
  time.now += 3_000;
  const [late, ...free] = underWay.splice(0);
  admission.charge(busy, 200);
  for (const one of free) one.end();
  assert.ok(admission.usedBy(parent) > 190, `${admission.usedBy(parent)} used of 200`);
  late?.charge(50);
  late?.end();
  assert.ok(admission.usedBy(parent) > 235, `${admission.usedBy(parent)} used of 250`);
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

test('beside a short request of another party long work has a quarter of the time', async () => {
  const { time, admission, served, underWay, enter } = fixture({ turnCostMax: 2 });
  const long = admission.part(admission.root, 'long', {});
  const other = admission.part(admission.root, 'other', {});
  let parts = 0;
  let isOver = false;
  const work = async (one: AdmittedEntrant) => {
    while (!isOver) {
      await one.next();
      time.now += 1;
      one.charge(1);
      parts += 1;
    }
    one.end();
  };
  for (let at = 0; at < 20; at += 1) enter(long, 'long');
  while (underWay.length < 20) await nextTurn();
  const working = underWay.splice(0).map(work);
  while (parts < 40) await nextTurn();
  served.length = 0;
  enter(other, 'short');
  assert.deepEqual(served, ['short'], 'it waits for none of the long work that waits');
  const [short] = underWay;
  assert.ok(short);
  const before = { parts, now: time.now };
  while (time.now < before.now + 16) {
    time.now += 0.5;
    await nextTurn();
  }
  const done = parts - before.parts;
  assert.ok(done <= 5, `${done} ms of long work in 16 ms`);
  // A request that takes longer waits for a disk or for another host.
  time.now += 1_000;
  const until = parts + 40;
  while (parts < until) await nextTurn();
  short.end();
  isOver = true;
  await Promise.all(working);
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
  const { time, admission } = fixture({ partiesMax: 11 });
  const all = admission.part(admission.root, 'all', {});
  const names = Array.from({ length: 20 }, (_, at) => `${at}`);
  const parties = new Set(names.map((name) => admission.part(all, name, {})));
  // Nine beside the two above them, and the one that the others share.
  assert.equal(parties.size, 10);
  assert.equal(admission.part(all, '99', {}).name, 'others');
  time.now += 2_000;
  assert.equal(admission.part(all, '99', {}).name, '99');
});

test('however many parties come, parts of the root stay, and so does a party that gets a part', () => {
  const { time, admission } = fixture({ partiesMax: 10 });
  const kept = admission.part(admission.root, 'kept', {});
  const flood = admission.part(admission.root, 'flood', {});
  for (let at = 0; at < 100; at += 1) {
    time.now += 1_000;
    const party = admission.part(flood, `${at}`, {});
    time.now += 1_000;
    // Idle until now, and the first that is looked at.
    admission.part(party, 'part', {});
    assert.ok(admission.part(flood, `${at}`, {}) === party);
  }
  assert.ok(admission.part(admission.root, 'kept', {}) === kept);
  assert.ok(admission.part(admission.root, 'flood', {}) === flood);
});

test('where too many wait, those of whom most wait are refused, and nobody else', () => {
  const { admission, refused, enter } = fixture();
  const parent = admission.part(admission.root, 'parent', { underWayMax: 0, waitingMax: 6 });
  const enterPart = (name: string, request = name) =>
    enter(admission.part(parent, name, {}), request);
  for (let at = 0; at < 5; at += 1) enterPart('many', `many ${at}`);
  for (const name of ['one', 'two', 'three']) enterPart(name);
  assert.deepEqual(
    refused,
    ['many 0', 'many 1'].map((name) => [name, 'too many wait']),
  );
  assert.equal(parent.waiting, 6);
});

/** Counts how often anything is looked at in a party. */
function countVisits(parties: Iterable<Party>): { visits: number } {
  const counted = { visits: 0 };
  for (const party of parties) {
    for (const name of ['underWay', 'parts', 'parent'] as const) {
      let value: unknown = party[name];
      Object.defineProperty(party, name, {
        get: () => {
          counted.visits += 1;
          return value;
        },
        set: (next: unknown) => {
          value = next;
        },
      });
    }
  }
  return counted;
}

test('with thousands of parties that wait, an operation visits few of them', async () => {
  const visitsOf = async (count: number) => {
    const { time, admission, enter, served, turns } = fixture({ turnCostMax: 1 });
    const visitors = admission.part(admission.root, 'visitors', {
      partMax: 0.25,
      underWayMax: 8,
      waitingMax: count,
    });
    const server = admission.part(admission.root, 'server', {});
    const parties = Array.from({ length: count + 200 }, (_, at) =>
      admission.part(visitors, `${at}`, {}),
    );
    for (const party of parties.slice(0, count)) enter(party, 'visitor', 1);
    const counted = countVisits(parties);
    // Beyond what may wait, each makes room or is refused.
    for (const party of parties.slice(count)) enter(party, 'visitor', 1);
    for (let at = 0; at < 100; at += 1) enter(server, 'server', 1);
    for (let turn = 0; turn < 200; turn += 1) {
      time.now += 1;
      await turns(1);
    }
    assert.equal(served.filter((name) => name === 'server').length, 100);
    return counted.visits;
  };
  const [few, many] = [await visitsOf(600), await visitsOf(6_000)];
  assert.ok(many < few * 2, `${many} visits with ten times as many parties, ${few} before`);
});

/** What a random load does: limits of each party of a tree, and steps in some order. */
const limitsOf = fc.record(
  {
    weight: fc.integer({ min: 1, max: 3 }),
    underWayMax: fc.integer({ min: 1, max: 6 }),
    waitingMax: fc.integer({ min: 1, max: 30 }),
    heldMax: fc.integer({ min: 1, max: 50 }),
  },
  { requiredKeys: [] },
);
const stepOf = fc.record({
  kind: fc.constantFrom('enter', 'hold', 'move', 'next', 'withdraw', 'end', 'turn'),
  party: fc.nat(),
  entrant: fc.nat(),
  amount: fc.integer({ min: 1, max: 20 }),
});

type Step = typeof stepOf extends fc.Arbitrary<infer T> ? T : never;

test('whatever the load, no limit is exceeded, everything that waits ends, and all is given back', async () => {
  const property = fc.asyncProperty(
    fc.array(limitsOf, { minLength: 1, maxLength: 3 }),
    fc.array(limitsOf, { minLength: 1, maxLength: 4 }),
    fc.array(stepOf, { maxLength: 150 }),
    async (inner, leaves, steps) => {
      const time = { now: 1_000 };
      const admission = new FairAdmission({
        now: () => time.now,
        turnCostMax: 1,
        waitMsMax: 10_000,
        limits: { underWayMax: 10, waitingMax: 60, heldMax: 100 },
      });
      const parents = inner.map((limits, at) => admission.part(admission.root, `${at}`, limits));
      const parties = parents.flatMap((parent) =>
        leaves.map((limits, at) => admission.part(parent, `${at}`, limits)),
      );
      const all = [admission.root, ...parents, ...parties];
      const admitted = new Set<AdmittedEntrant>();
      const moved = new Set<Party>();
      const withdraws: (() => void)[] = [];
      const ended = new Map<number, string>();
      let entered = 0;
      const run = async ({ kind, party: at, entrant, amount }: Step) => {
        const party = parties[at % parties.length] as Party;
        const one = [...admitted][entrant % Math.max(1, admitted.size)];
        if (kind === 'enter') {
          const number = entered;
          entered += 1;
          const withdraw = admission.enter(party, {
            begin: (begun) => {
              assert.equal(ended.has(number), false);
              ended.set(number, 'begun');
              admitted.add(begun);
            },
            refuse: (why) => {
              assert.equal(ended.has(number), false);
              ended.set(number, why);
            },
          });
          withdraws.push(() => {
            if (!ended.has(number)) ended.set(number, 'withdrawn');
            withdraw();
          });
        } else if (kind === 'withdraw') withdraws[entrant % Math.max(1, withdraws.length)]?.();
        else if (kind === 'turn') {
          time.now += amount;
          await nextTurn();
        } else if (one && kind === 'hold') one.hold(amount);
        else if (one && kind === 'next') void one.next();
        else if (one && kind === 'move') {
          one.move(party);
          moved.add(party).add(party.parent as Party);
        } else if (one && kind === 'end') {
          admitted.delete(one);
          one.charge(amount);
          one.end();
        }
        for (const { waiting, waitingMax } of all) assert.ok(waiting <= waitingMax);
        for (const each of all) {
          if (moved.has(each)) continue;
          assert.ok(each.underWay <= each.underWayMax, `${each.underWay} under way`);
          assert.ok(each.held <= each.heldMax, `${each.held} held`);
        }
      };
      for (const step of steps) await run(step);
      for (let turn = 0; turn < 500 && admission.waiting + admitted.size > 0; turn += 1) {
        for (const one of admitted) one.end();
        admitted.clear();
        time.now += 1;
        await nextTurn();
      }
      assert.equal(admission.waiting, 0);
      assert.equal(ended.size, entered, 'each begins, is refused or is withdrawn, once');
      for (const { underWay, held, waiting } of all) {
        assert.deepEqual({ underWay, held, waiting }, { underWay: 0, held: 0, waiting: 0 });
      }
    },
  );
  await fc.assert(property, { numRuns: 150 });
});
