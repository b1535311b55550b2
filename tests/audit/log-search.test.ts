/** Searching the log: whatever the order in which entries were committed, lists are as if there were no blocks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLogs, type LogFilter, logPositionOf } from '../../src/audit/find.ts';
import { type Instant, instantAfter } from '../../src/base/clock.ts';
import type { Change } from '../../src/store/change.ts';
import { blockMax } from '../../src/store/log-chain/block.ts';
import {
  codeOf,
  disclosureOf,
  shownWords,
  throughWords,
} from '../../src/store/log-chain/disclosure.ts';
import type { LogEntry, PlacedEntry } from '../../src/store/log-chain/entries.ts';
import { entriesIn } from '../support/blocks.ts';
import { entry, now, tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';
import { type Below, seeded } from '../support/random.ts';

const disclosed = ({ disclosure }: PlacedEntry) =>
  disclosure === null ? undefined : disclosureOf(disclosure);

/** The entries of a filter, newest first, without any block. */
function expected(all: readonly PlacedEntry[], filter: LogFilter): PlacedEntry[] {
  const { entity_type: type, entity_id: id, shown, through, oldest, until } = filter;
  return all
    .filter((one) => one.tenant_id === filter.tenant)
    .filter((one) => type === undefined || one.entity_type === type)
    .filter((one) => id === undefined || one.entity_id === id)
    .filter((one) => shown === undefined || disclosed(one)?.shown === shown)
    .filter((one) => through === undefined || disclosed(one)?.through === through)
    .filter(({ created_at: at }) => at >= oldest && (until === undefined || at < until))
    .sort((one, two) => {
      const [a, b] = [logPositionOf(two), logPositionOf(one)];
      return a[0] - b[0] || (a[1] < b[1] ? -1 : Number(a[1] > b[1])) || a[2] - b[2];
    });
}

const namesOf = (entries: readonly PlacedEntry[]) =>
  entries.map(({ created_at, stream_id, seq, entity_id, entity_type }) =>
    [created_at, stream_id, seq, entity_type, entity_id].join(' '),
  );

const anyShown = (below: Below) => shownWords[below(shownWords.length)] ?? 'masked';
const anyThrough = (below: Below) => throughWords[below(throughWords.length)] ?? 'get';

/** Of commits at the same time. */
const rounds = 12;

const types = ['token', 'session', 'tenant'] as const;

/** Dated within some seconds, sometimes long before; many at the same time. */
function anyEntry(below: Below): LogEntry {
  const ago = below(10) === 0 ? below(60_000) : below(40) * 100;
  return {
    ...entry(`entity ${below(12)}`),
    tenant_id: below(8) === 0 ? (tenant.replace('1', '2') as typeof tenant) : tenant,
    entity_type: types[below(types.length)] ?? 'token',
    disclosure:
      below(2) === 0 ? null : codeOf({ shown: anyShown(below), through: anyThrough(below) }),
    created_at: instantAfter(now, -ago),
  };
}

function anyFilter(below: Below): LogFilter {
  const maybe = <V>(value: V): V | undefined => (below(2) === 0 ? value : undefined);
  const time = () => instantAfter(now, -below(50) * 100);
  return {
    tenant,
    entity_type: maybe(types[below(types.length)] ?? 'token'),
    entity_id: maybe(`entity ${below(13)}`),
    shown: below(3) === 0 ? anyShown(below) : undefined,
    through: below(3) === 0 ? anyThrough(below) : undefined,
    oldest: maybe(time()) ?? (0 as Instant),
    until: maybe(time()),
  };
}

onBothEngines('a search of the log', (engine) => {
  test('gives what there is in its order, by cursor and by number, however it was committed', async (t) => {
    const below = seeded(t);
    const place = await engine.place(t);
    const stores = await Promise.all([engine.open(place), engine.open(place)]);
    t.after(() => Promise.all(stores.map((store) => store.close())));
    for (let round = 0; round < rounds; round += 1) {
      const commits = Array.from({ length: 1 + below(12) }, () => {
        const entries = Array.from({ length: 1 + below(6) }, () => anyEntry(below));
        return stores[below(2)]?.commit({ entries } as unknown as Change);
      });
      await Promise.all(commits);
      // A block of its own, with several entries, whatever met in groups.
      const entries = [entry('entity 0'), entry('entity 1')];
      await stores[round % 2]?.commit({ entries } as unknown as Change);
    }
    const [store] = stores;
    const all = await entriesIn(store);
    const blocks = await store.select((db) => db.selectFrom('logs').selectAll());
    assert.ok(blocks.length >= 2 * rounds && blocks.length < all.length, `${blocks.length} blocks`);
    for (let round = 0; round < 40; round += 1) {
      const filter = anyFilter(below);
      const whole = namesOf(expected(all, filter));
      const limit = 1 + below(25);
      const skip = below(whole.length + 2);
      const page = await findLogs(store, { ...filter, after: undefined, skip, limit });
      assert.deepEqual(namesOf(page), whole.slice(skip, skip + limit));
      const walked: PlacedEntry[] = [];
      for (let after: PlacedEntry | undefined; ; after = walked.at(-1)) {
        const position = after && logPositionOf(after);
        const next = await findLogs(store, { ...filter, after: position, skip: 0, limit });
        walked.push(...next);
        if (next.length < limit) break;
      }
      assert.deepEqual(namesOf(walked), whole);
    }
  });

  for (const beyond of [0, 1]) {
    test(`is whole where a block is as large as it may be: ${blockMax.entries + beyond} entries`, async (t) => {
      const store = await engine.store(t);
      const many = Array.from({ length: blockMax.entries + beyond }, (_, n) => entry(`t ${n}`));
      await store.commit({ entries: many } as unknown as Change);
      const filter = { tenant, entity_type: undefined, oldest: 0 as Instant, until: undefined };
      const search = { ...filter, after: undefined, skip: 0 };
      const found = await findLogs(store, { ...search, entity_id: undefined, limit: 2_000 });
      assert.deepEqual(namesOf(found), namesOf((await entriesIn(store)).toReversed()));
      for (const id of ['t 0', `t ${many.length - 1}`]) {
        assert.equal((await findLogs(store, { ...search, entity_id: id, limit: 9 })).length, 1);
      }
    });
  }

  test('gives the first of entries at the same time, however many blocks they are', async (t) => {
    const store = await engine.store(t);
    const many = Array.from({ length: blockMax.entries }, () => entry('t'));
    // More than the arguments that a call may have: none of them is settled before the last block is read.
    for (let block = 0; block < 300; block += 1) {
      await store.commit({ entries: many } as unknown as Change);
    }
    const filter = { tenant, entity_type: undefined, entity_id: undefined, until: undefined };
    const search = { ...filter, oldest: 0 as Instant, after: undefined };
    const [skip, limit] = [blockMax.entries - 1, 3];
    const first = await findLogs(store, { ...search, skip: 0, limit: skip + limit });
    assert.deepEqual(
      namesOf(await findLogs(store, { ...search, skip, limit })),
      namesOf(first.slice(skip)),
    );
    const [newest] = namesOf(expected(await entriesIn(store), search));
    assert.equal(namesOf(first)[0], newest);
  });

  test('fails where a block was altered so that it cannot be read, and says which', async (t) => {
    const place = await engine.place(t);
    const store = await engine.open(place);
    t.after(() => store.close());
    await store.commit({ entries: [entry('a')] });
    await engine.run(place, "update logs set body = 'x'");
    const search = { tenant, entity_type: undefined, entity_id: undefined, until: undefined };
    await assert.rejects(
      findLogs(store, { ...search, oldest: 0 as Instant, after: undefined, skip: 0, limit: 9 }),
      { code: 'integrity', message: /^block 1 of log stream \S+ was altered/ },
    );
  });
});
