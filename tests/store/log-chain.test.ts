/** The hash chain of the audit log: its exact bytes, and how it grows. */
import assert from 'node:assert/strict';
import { createHash, createHmac, createSecretKey } from 'node:crypto';
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
  termOf,
  textsOf,
  writtenEntry,
} from '../../src/store/log-chain/block.ts';
import { LogChain } from '../../src/store/log-chain/chain.ts';
import {
  entryHash,
  factsOf,
  noSource,
  type StatedEntry,
  seedHead,
  streamSeed,
  textOf,
} from '../../src/store/log-chain/entries.ts';
import { follows, headOf, linkOfBlock, linkOfEntry } from '../../src/store/log-chain/links.ts';
import { isProven } from '../../src/store/log-chain/proof.ts';

const tenant = '00000000-0000-4000-8000-000000000001' as TenantId;
const other = '00000000-0000-4000-8000-000000000002' as TenantId;
const stream = '00000000-0000-4000-8000-00000000000a';

const entry: StatedEntry = {
  tenant_id: tenant,
  created_at: 1_800_000_000_000 as Instant,
  actor_id: null,
  actor_type: 'system',
  entity_type: 'token',
  entity_id: 'über "das" \\ ☃',
  operation: 'read',
  message: 'Token retrieved',
  result: 'success',
  disclosure: null,
  source: null,
  container: null,
  origin: '127.0.0.1',
  trace_id: null,
  state: null,
};

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

const blocksOf = (chain: LogChain, ...entries: readonly StatedEntry[]): readonly LogBlock[] => {
  const logged = { entries: entries.map((one) => writtenEntry(one, one.state)), provers: [] };
  const continuation = chain.continue([logged]);
  chain.adopt(continuation);
  return continuation.blocks.map(({ block }) => block);
};

const oneBlock = (chain: LogChain, ...entries: readonly StatedEntry[]): LogBlock => {
  const [block, ...others] = blocksOf(chain, ...entries);
  assert.ok(block);
  assert.deepEqual(others, []);
  return block;
};

const text = (change: Partial<StatedEntry> = {}) => {
  const changed = { ...entry, ...change };
  return textOf(changed, changed.state);
};

// The texts are those of docs/audit.md, by which others write their own verifier.
test('the seed, the text and the hash are those that are documented', () => {
  const seed = sha256(`["strongroom log stream",1,"${tenant}","${stream}"]`);
  assert.equal(streamSeed(tenant, stream), seed);
  const expected =
    '[null,"system","127.0.0.1","token","read","Token retrieved","success",null,1800000000000,' +
    '"über \\"das\\" \\\\ ☃",null]';
  assert.equal(text(), expected);
  assert.equal(text({ state: '+1.AAECAw' }), `${expected.slice(0, -1)},"+1.AAECAw"]`);
  assert.equal(entryHash(seed, 1, expected), sha256(`${seed}1${expected}`));
});

test('a text is the JSON of its facts, whatever they hold', () => {
  const any = fc.string({ unit: 'binary', maxLength: 8 });
  const orNull = fc.option(any);
  fc.assert(
    fc.property(any, orNull, orNull, orNull, (entity_id, trace_id, state, origin) => {
      const { actor_id, actor_type, entity_type, operation, message, created_at } = entry;
      const first = [actor_id, actor_type, origin, entity_type, operation, message];
      const facts = [...first, entry.result, entry.disclosure, created_at, entity_id, trace_id];
      const expected = state === null ? facts : [...facts, state];
      assert.equal(text({ entity_id, trace_id, state, origin }), JSON.stringify(expected));
    }),
  );
});

test('the hash depends on every fact, on the place and on all before', () => {
  const original = entryHash('a', 1, text());
  const { tenant_id: _, source: __, container: ___, ...facts } = entry;
  const changes = [
    ...Object.keys(facts).map((name) => ({ [name]: 'changed' })),
    { source: noSource },
    { source: noSource, container: 'changed' },
    ...Object.keys(noSource).map((name) => ({ source: { ...noSource, [name]: 'changed' } })),
    { actor_id: '' },
    { trace_id: '' },
    { state: '' },
    { created_at: instantAfter(entry.created_at, 1) },
  ];
  const hashes = changes.map((change) => entryHash('a', 1, text(change)));
  const places = [entryHash('b', 1, text()), entryHash('a', 2, text())];
  assert.equal(new Set([original, ...places, ...hashes]).size, changes.length + 3);
});

test('facts cannot move into one another', () => {
  const texts = [
    text({ entity_type: 'x","y', operation: 'z' }),
    text({ entity_type: 'x', operation: 'y","z' }),
    text({ entity_type: 'x","y","z', operation: '' }),
    text({ entity_type: 'x\ny', operation: 'z' }),
  ];
  assert.equal(new Set(texts).size, texts.length);
  for (const one of texts) assert.equal(one.includes('\n'), false);
});

test('what a text says is read back; anything that is not such a text is not', () => {
  const { tenant_id: _, ...facts } = { ...entry, state: '+1.AAECAw', actor_id: 'a' };
  assert.deepEqual(factsOf(text(facts)), facts);
  const wrong = [
    '',
    'null',
    '{}',
    '[]',
    `${text()} x`,
    text({ created_at: -1 as Instant }),
    text({ created_at: 1.5 as Instant }),
    text({ created_at: 8.64e15 as Instant }),
    text({ entity_id: 'x' }).replace('"x"', 'null'),
    text({ state: 'x' }).replace('"x"', '5'),
    `${text({ state: 'x' }).slice(0, -1)},"more"]`,
  ];
  for (const one of wrong) assert.equal(factsOf(one), undefined, one);
});

test('a body gives back the texts, whatever they have in common', () => {
  const ids = [
    '',
    'a',
    'ab',
    'ab',
    'b',
    '😀',
    '😁',
    '😁x',
    '\ud83d',
    '7 ',
    '\n',
    'ab'.repeat(2000),
  ];
  const entries = ids.map((entity_id) => ({ ...entry, entity_id }));
  const { body } = oneBlock(new LogChain(stream), ...entries);
  assert.equal(Buffer.from(body).toString(), body, 'it can be stored as UTF-8');
  assert.deepEqual(
    textsOf(body),
    entries.map((one) => textOf(one, null)),
  );
  assert.ok(body.length < entries.map((one) => textOf(one, null)).join().length / 1.2);
});

test('entries of a tenant are numbered from 1, and each block follows the one before', () => {
  const chain = new LogChain(stream);
  let head = seedHead(tenant, stream);
  for (let size = 1; size <= 3; size += 1) {
    const block = oneBlock(chain, ...Array.from({ length: size }, () => entry));
    assert.equal(block.last_seq - block.first_seq + 1, size);
    const link = linkOfBlock(block);
    assert.equal(follows(head, link), true);
    const altered = { ...block, body: block.body.replace('retrieved', 'deleted') };
    assert.equal(follows(head, linkOfBlock(altered)), false);
    for (const chained of chainBlock(head.hash, block)) {
      assert.equal(follows(head, linkOfEntry(chained)), true);
      assert.equal(follows(head, linkOfEntry({ ...chained, message: 'changed' })), false);
      head = chained;
    }
    assert.deepEqual({ seq: head.seq, hash: head.hash }, headOf(link));
  }
  assert.equal(oneBlock(chain, { ...entry, tenant_id: other }).first_seq, 1);
  assert.equal(oneBlock(chain, entry).first_seq, 7);
});

test('a group that is dropped leaves no trace', () => {
  const chain = new LogChain(stream);
  const logged = { entries: [writtenEntry(entry, null)], provers: [] };
  chain.continue([logged, logged]);
  assert.equal(oneBlock(chain, entry).first_seq, 1);
  chain.continue([logged]);
  assert.equal(oneBlock(chain, entry).first_seq, 2);
});

test('the entries of several tenants are blocks of their own', () => {
  const theirs = { ...entry, tenant_id: other };
  const blocks = blocksOf(new LogChain(stream), entry, theirs, entry);
  assert.deepEqual(
    blocks.map(({ tenant_id, last_seq }) => [tenant_id, last_seq]),
    [
      [tenant, 2],
      [other, 1],
    ],
  );
});

test('a block has so many entries at most, and they are so far apart', () => {
  const lengths = (...entries: readonly StatedEntry[]) =>
    blocksOf(new LogChain(stream), ...entries).map((block) => {
      assert.ok(isExact(block, textsOf(block.body)));
      return block.last_seq - block.first_seq + 1;
    });
  const many = (count: number) => Array.from({ length: count }, () => entry);
  assert.deepEqual(lengths(...many(blockMax.entries)), [blockMax.entries]);
  assert.deepEqual(lengths(...many(blockMax.entries + 1)), [blockMax.entries, 1]);
  const later = (ms: number) => ({ ...entry, created_at: instantAfter(entry.created_at, ms) });
  assert.deepEqual(lengths(later(blockMax.spanMs), entry), [2]);
  assert.deepEqual(lengths(entry, later(blockMax.spanMs + 1), later(blockMax.spanMs)), [1, 2]);
});

test('no column of a block by which it is searched can be changed unnoticed', () => {
  const entries = [
    entry,
    { ...entry, entity_id: 'x', created_at: instantAfter(entry.created_at, 5) },
  ];
  const block = oneBlock(new LogChain(stream), ...entries);
  const { entities, first_at, last_at } = block;
  assert.equal(
    entities,
    termOf('entity_id', entry.entity_id) +
      termOf('entity_type', 'token') +
      termOf('entity_id', 'x'),
  );
  assert.deepEqual([first_at, last_at], [entry.created_at, entry.created_at + 5]);
  const head = seedHead(tenant, stream);
  assert.ok(follows(head, linkOfBlock(block)));
  const changes: readonly Partial<LogBlock>[] = [
    { entities: entities.slice(4) },
    { entities: `${entities}AAAA` },
    { first_at: instantAfter(first_at, 1) },
    { last_at: first_at },
    { last_seq: 1 },
    { last_seq: 3 },
    { body: textsOf(block.body).join('\n').replace('","', '", "') },
  ];
  for (const change of changes) {
    assert.equal(
      follows(head, linkOfBlock({ ...block, ...change })),
      false,
      JSON.stringify(change),
    );
  }
});

test('what is not as the vault writes it is not opened', () => {
  const block = oneBlock(new LogChain(stream), entry, entry);
  assert.equal(openBlock(block)?.length, 2);
  for (const body of ['', 'x', '99 ,null]', `${block.body}\n`, `${block.body}\n[]`]) {
    assert.equal(openBlock({ ...block, body }), undefined, body);
    assert.equal(follows(seedHead(tenant, stream), linkOfBlock({ ...block, body })), false);
  }
});

test('a block is proven under the key of its tenant, in its place and whole', () => {
  const key = createSecretKey(Buffer.alloc(32, 1));
  const provers = [
    { tenant_id: other, version: 7, key: createSecretKey(Buffer.alloc(32, 2)) },
    { tenant_id: tenant, version: 2, key },
  ];
  const continuation = new LogChain(stream).continue([
    { entries: [writtenEntry(entry, null), writtenEntry(entry, '+1.AAECAw')], provers },
  ]);
  const [block] = continuation.blocks.map((one) => one.block);
  assert.ok(block);
  const at = (version: number) => (version === 2 ? key : undefined);
  assert.ok(isProven(block, at));
  // The text is that of docs/crypto.md.
  const place = ['strongroom log block', 1, tenant, stream, 1, 2, block.hash];
  const mac = createHmac('sha256', key).update(`${JSON.stringify(place)}\n${block.body}`);
  assert.equal(block.proof, `2.${mac.digest('base64url')}`);
  const changes: readonly Partial<LogBlock>[] = [
    { tenant_id: other },
    { stream_id: 'another' },
    { first_seq: 2 },
    { last_seq: 3 },
    { hash: 'a'.repeat(64) },
    { body: block.body.replace('retrieved', 'deleted') },
    { proof: null },
    { proof: '' },
    { proof: `1${block.proof?.slice(1)}` },
    { proof: `2.${'A'.repeat(43)}` },
  ];
  for (const change of changes) {
    assert.equal(isProven({ ...block, ...change }, at), false, JSON.stringify(change));
  }
  assert.equal(
    isProven(block, () => undefined),
    false,
  );
});

test('streams of one tenant, and tenants of one stream, cannot be swapped', () => {
  const first = linkOfBlock(oneBlock(new LogChain(stream), entry));
  assert.ok(follows(seedHead(tenant, stream), first));
  assert.equal(follows(seedHead(tenant, 'another'), first), false);
  assert.equal(follows(seedHead(other, stream), first), false);
});
