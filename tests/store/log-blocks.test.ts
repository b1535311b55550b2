/** How large a block of the log may be: what is written stays within it, and what is larger is not decoded. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Instant, instantAfter } from '../../src/base/clock.ts';
import type { TenantId } from '../../src/base/ids.ts';
import {
  blockMax,
  chainBlock,
  isExact,
  type LogBlock,
  openBlock,
  textsOf,
  writtenEntry,
} from '../../src/store/log-chain/block.ts';
import { LogChain } from '../../src/store/log-chain/chain.ts';
import { type StatedEntry, seedHead, textOf } from '../../src/store/log-chain/entries.ts';
import { follows, headOf, linkOfBlock } from '../../src/store/log-chain/links.ts';

const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const stream = '00000000-0000-4000-8000-00000000000a';

const entry: StatedEntry = {
  tenant_id: tenant,
  created_at: 1_800_000_000_000 as Instant,
  actor_id: null,
  actor_type: 'system',
  entity_type: 'token',
  entity_id: '',
  operation: 'read',
  message: '',
  result: 'success',
  disclosure: null,
  source: null,
  container: null,
  origin: null,
  trace_id: null,
  state: null,
};

const textOfEntry = (one: StatedEntry) => textOf(one, one.state);

const totalOf = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0);

function blocksOf(entries: readonly StatedEntry[]): readonly LogBlock[] {
  const logged = { entries: entries.map((one) => writtenEntry(one, one.state)), provers: [] };
  return new LogChain(stream).continue([logged]).blocks.map(({ block }) => block);
}

/** Checks all that a reader relies on, and gives the texts of each block. */
function textsOfBlocks(entries: readonly StatedEntry[]): string[][] {
  let head = seedHead(tenant, stream);
  const found = blocksOf(entries).map((block) => {
    const texts = textsOf(block.body);
    assert.equal(block.body.isWellFormed(), true);
    assert.ok(isExact(block, texts));
    assert.ok(follows(head, linkOfBlock(block)));
    assert.deepEqual(openBlock(block)?.map(textOfEntry), texts);
    assert.equal(chainBlock(head.hash, block).at(-1)?.hash, block.hash);
    assert.ok(texts.length <= blockMax.entries);
    assert.ok(texts.length === 1 || totalOf(texts) <= blockMax.characters);
    head = headOf(linkOfBlock(block));
    return texts;
  });
  assert.deepEqual(found.flat(), entries.map(textOfEntry));
  return found;
}

/** An entry whose text has so many characters. */
function entryOfLength(length: number): StatedEntry {
  const message = 'm'.repeat(length - textOfEntry(entry).length);
  return { ...entry, message };
}

/** Many alike, as a commit has them, or few that are long; what they share ends anywhere. */
const anyRun = fc
  .record({
    unit: fc.constantFrom('m', 'é', '😀', '\ud83d', '"', '\n', '\u2028', 'ab😁'),
    repeats: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 0, max: 300 }) },
      { weight: 2, arbitrary: fc.integer({ min: 1_000, max: 90_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 90_000, max: 700_000 }) },
    ),
    ends: fc.array(fc.string({ unit: 'binary', maxLength: 3 }), { minLength: 1, maxLength: 8 }),
    count: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 700 })),
    ms: fc.integer({ min: 0, max: 700 }),
  })
  .map(({ unit, repeats, ends, count, ms }) => {
    const message = unit.repeat(repeats);
    // What is put together is some three times as large as a block at most.
    const fewer = Math.min(count, 1 + Math.floor((3 * blockMax.characters) / (message.length + 1)));
    return Array.from({ length: fewer }, (_, n) => ({
      ...entry,
      message: message + (ends[n % ends.length] ?? ''),
      entity_id: ends[(n + 1) % ends.length] ?? '',
      created_at: instantAfter(entry.created_at, ms),
    }));
  });

test('whatever is written becomes blocks within the limits, which follow each other and give all of it back', () => {
  fc.assert(
    fc.property(fc.array(anyRun, { minLength: 1, maxLength: 3 }), (runs) => {
      textsOfBlocks(runs.flat());
    }),
    { numRuns: 30 },
  );
});

test('a block has so many characters at most; one longer text is a block of its own', () => {
  const max = blockMax.characters;
  const half = max / 2;
  const lengths = (...wanted: readonly number[]) =>
    textsOfBlocks(wanted.map(entryOfLength)).map((texts) => texts.map(({ length }) => length));
  assert.deepEqual(lengths(half, half), [[half, half]]);
  assert.deepEqual(lengths(half, half + 1), [[half], [half + 1]]);
  assert.deepEqual(lengths(half, half, 200), [[half, half], [200]]);
  assert.deepEqual(lengths(max), [[max]]);
  assert.deepEqual(lengths(200, 3 * max, 3 * max, 200, 200), [
    [200],
    [3 * max],
    [3 * max],
    [200, 200],
  ]);
});

/** A body in which every line after the first repeats its text. */
const repeating = (text: string, times: number) => text + `\n${text.length} `.repeat(times - 1);

/** Columns as they follow from the texts, but for the hash. */
function forged(body: string, last_seq: number): LogBlock {
  const [like] = blocksOf([entry]);
  assert.ok(like);
  return { ...like, body, last_seq };
}

test('lines that stand for more than a block has are not decoded further than that', () => {
  const max = blockMax.characters;
  for (const length of [990_000, max, max - 1, max / 2 + 1, 100_000, 2_000]) {
    const text = textOfEntry(entryOfLength(length));
    const body = repeating(text, blockMax.entries);
    const texts = textsOf(body);
    assert.equal(texts.length, Math.floor(max / length) + (length > max ? 2 : 1), `${length}`);
    assert.ok(totalOf(texts) <= Math.max(max, length) + length);
    const block = forged(body, texts.length);
    assert.equal(isExact(block, texts), false);
    assert.equal(linkOfBlock(block).isExact, false);
    assert.equal(openBlock(block), undefined);
    assert.deepEqual(chainBlock('', block), []);
  }
});

test('lines that together have as much as a block may are decoded, and with one more character are not', () => {
  const times = 4;
  const length = blockMax.characters / times;
  const body = repeating(textOfEntry(entryOfLength(length)), times);
  assert.equal(openBlock(forged(body, times))?.length, times);
  assert.equal(textsOf(body).length, times);
  const longer = textOfEntry(entryOfLength(length + 1));
  const larger = `${longer}\n${repeating(textOfEntry(entryOfLength(length)), times - 1)}`;
  assert.equal(openBlock(forged(larger, times)), undefined);
  assert.equal(openBlock(forged(`${body}\n${length} `, times + 1)), undefined);
});
