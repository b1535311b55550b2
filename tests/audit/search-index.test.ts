/** The search index of the log: filters open only blocks that match, and the index decides nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLogs, type LogFilter, logPositionOf } from '../../src/audit/find.ts';
import { oldestReadable } from '../../src/audit/list.ts';
import { indexLog } from '../../src/audit/search-index/build.ts';
import { latenessMsMax } from '../../src/audit/search-index/chapter.ts';
import { hour, type Instant, instantAfter, minute, second } from '../../src/base/clock.ts';
import { pooledRandom } from '../../src/base/random.ts';
import { createKeyring } from '../../src/keys/keyring.ts';
import type { Change } from '../../src/store/change.ts';
import { codeOf, shownWords } from '../../src/store/log-chain/disclosure.ts';
import { type LogEntry, noSource, type PlacedEntry } from '../../src/store/log-chain/entries.ts';
import { ChapterTerms, endsIn, slotOf, slotsMax } from '../../src/store/log-chain/postings.ts';
import type { Query, Store } from '../../src/store/store.ts';
import type { Unread } from '../../src/store/stored-row.ts';
import { entry, now, tenant } from '../support/changes.ts';
import { onBothEngines } from '../support/engines.ts';
import { runJob } from '../support/jobs.ts';
import { nextLook } from '../support/poll.ts';
import { type Below, seeded } from '../support/random.ts';
import { createApplication, startVault } from '../support/vault.ts';

const keys = { id: tenant, keyring: createKeyring(pooledRandom()) };
/** When all that the tests write is old enough to be indexed. */
const later = instantAfter(now, 2 * latenessMsMax);
const clock = { now: () => later };
const index = { keyring: keys.keyring, now: later };
const going = new AbortController().signal;
const everything = { tenant, entity_type: undefined, entity_id: undefined, until: undefined };
const whole = { ...everything, oldest: 0 as Instant, after: undefined, skip: 0 };

const namesOf = (entries: readonly PlacedEntry[]) =>
  entries.map((one) => JSON.stringify([logPositionOf(one), one.entity_id, one.operation]));

/** Blocks of one entry each, a minute apart, oldest first. */
async function write(store: Store, entries: readonly LogEntry[], from: Instant): Promise<void> {
  const dated = entries.map((one, place) => ({
    ...one,
    created_at: instantAfter(from, place * minute),
  }));
  for (let at = 0; at < dated.length; at += 100) {
    await store.commit({ entries: dated.slice(at, at + 100) } as unknown as Change);
  }
}

const ago = (ms: number) => instantAfter(now, -ms);
const noise = (count: number, name: string) =>
  Array.from({ length: count }, (_, place) => entry(`${name} ${place}`));

/** The rows of the log and of the index that a search reads. */
function counting(store: Store) {
  const counts = { blocks: 0, rows: 0 };
  const read =
    <P extends unknown[]>(query: <R>(asked: Query<R> & Unread<R>, ...payer: P) => Promise<R[]>) =>
    async <R>(asked: Query<R> & Unread<R>, ...payer: P): Promise<R[]> => {
      const found = await query(asked, ...payer);
      counts.rows += found.length;
      counts.blocks += found.filter(
        (row) => typeof row === 'object' && 'body' in (row as object),
      ).length;
      return found;
    };
  return { counts, store: { select: read(store.select), scan: read(store.scan) } };
}

test('a list of block ends is as it was, for every term and at the limits of a chapter', (t) => {
  const below = seeded(t);
  const since = 1_000 as Instant;
  const until = instantAfter(since, 40 * 365 * 24 * hour);
  const terms = Array.from({ length: 300 }, () => randomTerm(below));
  const ends = [
    instantAfter(since, 1),
    ...Array.from({ length: 200 }, () => instantAfter(since, 1 + below(2 ** 31))),
  ]
    .sort((one, two) => one - two)
    .concat(until);
  const blocks = ends.map((last_at) => ({
    last_at,
    entities: `.${Array.from({ length: 1 + below(4) }, () => terms[below(terms.length)]).join('')}`,
  }));
  const chapter = new ChapterTerms(since);
  for (const block of blocks) chapter.add(block);
  for (const term of [...terms, randomTerm(below)]) {
    const found = endsIn({ since, until }, chapter.postingsOf(slotOf(term), until), term);
    const expected = blocks
      .filter(({ entities }) => hasTerm(entities, term))
      .map((one) => one.last_at);
    assert.deepEqual(found, [...new Set(expected)]);
  }
});

function randomTerm(below: Below): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return Array.from({ length: 4 }, () => digits[below(64)]).join('');
}

function hasTerm(entities: string, term: string): boolean {
  for (let at = 1; at < entities.length; at += 4) if (entities.startsWith(term, at)) return true;
  return false;
}

onBothEngines('the search index of the log', (engine) => {
  test('a filter opens as many blocks when nine times as many entries do not match', async (t) => {
    const store = await engine.store(t);
    const leaked: LogEntry = {
      ...entry('t-1', 'read'),
      actor_id: '00000000-0000-4000-8000-0000000000aa' as never,
      source: { ...noSource, key_id: '00000000-0000-4000-8000-0000000000bb' as never },
      container: '/pci/high/',
      origin: '203.0.113.7',
      result: 'denied',
      disclosure: codeOf({ shown: 'revealed', through: 'get' }),
      trace_id: '0123456789abcdef0123456789abcdef',
    };
    const filters: Partial<LogFilter>[] = [
      { actor_id: leaked.actor_id ?? '' },
      { key_id: leaked.source?.key_id ?? '' },
      { address: '203.0.113.7' },
      { operation: 'read' },
      { result: 'denied' },
      { entity_id: 't-1' },
      { container: '/pci/high/' },
      { shown: 'revealed' },
      { trace_id: leaked.trace_id ?? '' },
      { key_id: leaked.source?.key_id ?? '', shown: 'revealed', address: '203.0.113.7' },
    ];
    const indexing = { store, clock, chapterEntries: 100 };
    const opened = async () => {
      const seen: number[][] = [];
      for (const filter of filters) {
        const { counts, store: counted } = counting(store);
        const found = await findLogs(counted, { ...whole, ...filter, index, limit: 50 });
        assert.equal(found.length, 3, JSON.stringify(filter));
        seen.push([counts.blocks, counts.rows]);
      }
      return seen;
    };
    await write(store, [...noise(60, 'a'), leaked, ...noise(39, 'b')], ago(90 * hour));
    await write(store, [leaked, ...noise(98, 'c'), leaked], ago(80 * hour));
    assert.equal(await indexLog(indexing, keys, going), 200);
    const before = await opened();
    assert.ok(
      before.every(([blocks]) => blocks === 3),
      JSON.stringify(before),
    );
    await write(store, noise(1_800, 'd'), ago(70 * hour));
    assert.equal(await indexLog(indexing, keys, going), 1_800);
    const after = await opened();
    assert.deepEqual(
      after.map(([blocks]) => blocks),
      before.map(([blocks]) => blocks),
    );
    // Of each further chapter, one row for each term, and one for all of them; of some, twice.
    const chapters = 18 + 6;
    after.forEach(([, rows], place) => {
      assert.ok((rows ?? 0) - (before[place]?.[1] ?? 0) <= chapters * 4, `${rows} rows`);
    });
  });

  test('searches give the same with and without it, whatever was indexed, removed or altered', async (t) => {
    const below = seeded(t);
    const place = await engine.migrated(t);
    const store = await engine.open(place);
    t.after(() => store.close());
    const entries = Array.from({ length: 400 }, () => anyEntry(below));
    await write(store, entries, ago(20 * hour));
    const filters = Array.from({ length: 30 }, () => anyFilter(below));
    const expected = await searched(store, filters, undefined);
    const empty = engine.name === 'sqlite' ? "x''" : "'\\x'";
    const newest = '(select max(until) from log_index)';
    for (const sql of [
      undefined,
      'delete from log_index where slot % 3 = 0',
      `delete from log_index where until = ${newest}`,
      'update log_index set since = 0',
      `update log_index set postings = ${empty}`,
      `update log_index set until = 9223372036854775807 where until = ${newest}`,
    ]) {
      await engine.run(place, 'delete from log_index');
      // Reads of one turn may share what they see.
      await nextLook();
      assert.equal(await indexLog({ store, clock, chapterEntries: 90 }, keys, going), 360);
      if (sql !== undefined) await engine.run(place, sql);
      await nextLook();
      assert.deepEqual(await searched(store, filters, index), expected, sql ?? '');
    }
  });

  test('an entry of a server whose clock is behind, or was ahead, is found', async (t) => {
    const store = await engine.store(t);
    const indexing = { store, clock, chapterEntries: 50 };
    await write(store, noise(60, 'a'), ago(hour));
    // The clock was a day ahead.
    const ahead = { now: () => instantAfter(later, 24 * hour) };
    await write(store, noise(60, 'b'), instantAfter(later, 12 * hour));
    await indexLog({ ...indexing, clock: ahead }, keys, going);
    await store.commit({
      entries: [{ ...entry('late'), created_at: instantAfter(later, -minute) }],
    });
    await store.commit({
      entries: [
        { ...entry('behind'), created_at: instantAfter(later, 5 * second - latenessMsMax) },
      ],
    });
    for (const entity_id of ['late', 'behind', 'a 3', 'a 59', 'b 3', 'b 59']) {
      const found = await findLogs(store, { ...whole, entity_id, index, limit: 5 });
      assert.deepEqual(
        found.map((one) => one.entity_id),
        [entity_id],
      );
    }
  });

  test('a chapter that a crash left in part is completed', async (t) => {
    const store = await engine.store(t);
    await write(store, noise(60, 'a'), ago(5 * hour));
    const stopping = new AbortController();
    const rest = async () => stopping.abort();
    const indexing = { store, clock, chapterEntries: 50 };
    assert.equal(await indexLog({ ...indexing, rest }, keys, stopping.signal), 0);
    const rows = () => store.select((db) => db.selectFrom('log_index').select(['slot', 'until']));
    assert.equal((await rows()).length, 100);
    assert.equal(await indexLog(indexing, keys, going), 50);
    assert.equal((await rows()).length, slotsMax);
    assert.equal(await indexLog(indexing, keys, going), 0);
  });

  test('the rows of a chapter go when retention has removed its entries', async (t) => {
    const vault = await startVault(t, engine);
    const { store, tenants } = vault.running.vault;
    await createApplication(vault.url);
    const [row] = await store.select((db) => db.selectFrom('tenants').select('tenant_id'));
    const own = row && (await tenants.find(row.tenant_id));
    assert.ok(own);
    vault.clock.advance(2 * hour);
    const { clock: time } = vault;
    await indexLog({ store, clock: time, chapterEntries: 1 }, own, going);
    const count = async () =>
      (await store.select((db) => db.selectFrom('log_index').select('until'))).length;
    assert.ok((await count()) >= slotsMax);
    await runJob(vault, 'remove old logs');
    assert.ok((await count()) >= slotsMax);
    vault.clock.advance(time.now() - oldestReadable(own, time.now()) + hour);
    await runJob(vault, 'remove old logs');
    assert.equal(await count(), 0);
  });
});

async function searched(
  store: Store,
  filters: readonly Partial<LogFilter>[],
  use: LogFilter['index'],
) {
  const found: string[][] = [];
  for (const filter of filters) {
    const all: PlacedEntry[] = [];
    for (let after: PlacedEntry | undefined; ; after = all.at(-1)) {
      const position = after && logPositionOf(after);
      const page = await findLogs(store, {
        ...whole,
        ...filter,
        index: use,
        after: position,
        limit: 7,
      });
      all.push(...page);
      if (page.length < 7) break;
    }
    const skipped = await findLogs(store, { ...whole, ...filter, index: use, skip: 3, limit: 4 });
    assert.deepEqual(namesOf(skipped), namesOf(all.slice(3, 7)));
    found.push(namesOf(all));
  }
  return found;
}

const operations = ['create', 'read', 'delete', 'update'] as const;

/** One in four is of an earlier release, whose blocks lack most terms. */
function anyEntry(below: Below): LogEntry {
  const shown = shownWords[below(shownWords.length)] ?? 'masked';
  return {
    ...entry(`t-${below(30)}`, operations[below(4)]),
    disclosure: below(3) === 0 ? null : codeOf({ shown, through: 'get' }),
    ...(below(4) === 0 && { source: null }),
    origin: below(3) === 0 ? null : `203.0.113.${below(5)}`,
    result: below(5) === 0 ? 'denied' : 'success',
  };
}

function anyFilter(below: Below): Partial<LogFilter> {
  const maybe = <V>(value: V) => (below(4) === 0 ? value : undefined);
  return {
    entity_id: maybe(`t-${below(31)}`),
    operation: maybe(operations[below(4)] as string),
    address: maybe(`203.0.113.${below(6)}`),
    result: maybe('denied'),
    shown: maybe(shownWords[below(shownWords.length)] ?? 'masked'),
    oldest: ago(below(20) * hour),
    until: below(3) === 0 ? ago(below(20) * hour) : undefined,
  };
}
