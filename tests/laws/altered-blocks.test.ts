/** Whatever is done to any block of the log in the database is found and located, given the last checkpoint kept. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { readLogs, tenantsWithLogs } from '../../src/audit/read.ts';
import type { LogRecord } from '../../src/audit/records.ts';
import { openCheckpoint, type Signed } from '../../src/audit/statements.ts';
import { LogVerifier, type Verification } from '../../src/audit/verify.ts';
import { type LogBlock, textsOf } from '../../src/store/log-chain/block.ts';
import {
  type EntryFacts,
  entryHash,
  factsOf,
  seedHead,
  textOf,
} from '../../src/store/log-chain/entries.ts';
import { openReadOnly } from '../../src/store/open/read-only.ts';
import { bodyOf } from '../support/blocks.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import { mixedTraffic, signCheckpoints } from '../support/logs.ts';
import { startVault } from '../support/vault.ts';

interface Sample {
  readonly statements: readonly LogRecord[];
  readonly blocks: readonly LogBlock[];
  /** The newest checkpoint, kept by the auditor. */
  readonly kept: Signed;
  /** Entries the newest checkpoint covers, by stream. */
  readonly covered: ReadonlyMap<string, number>;
}

async function sampleOf(t: TestContext, engine: Engine): Promise<Sample> {
  const vault = await startVault(t, engine);
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  const key = await vault.application();
  // One commit of many entries, whether or not requests meet.
  const tokens = Array.from({ length: 12 }, () => ({ type: 'token', data: 'x' }));
  await vault.send('POST', '/tokenize', { key, body: tokens });
  await mixedTraffic(vault, 1);
  await signCheckpoints(vault);
  await vault.stop();
  const store = await openReadOnly(vault.place.databaseUrl ?? vault.place.dataDir);
  const statements: LogRecord[] = [];
  const blocks: LogBlock[] = [];
  for await (const record of readLogs(store, await tenantsWithLogs(store))) {
    if (record.kind === 'blocks') blocks.push(...record.blocks);
    else if (record.kind === 'checkpoint') statements.push(record);
  }
  await store.close();
  const checkpoints = statements.flatMap((record) => ('signed' in record ? [record.signed] : []));
  const kept = checkpoints.at(-1);
  assert.ok(kept);
  const heads = checkpoints.flatMap((signed) => openCheckpoint(signed)?.heads ?? []);
  return { statements, blocks, kept, covered: new Map(heads.map(([id, seq]) => [id, seq])) };
}

function verify({
  statements,
  blocks,
  kept,
}: Pick<Sample, 'statements' | 'blocks' | 'kept'>): Verification {
  const verifier = new LogVerifier({ kept: [kept], trustedKeys: [] });
  for (const record of statements) verifier.take(record);
  verifier.take({ kind: 'blocks', blocks });
  return verifier.finish();
}

/** The blocks of one stream in their order, as an attacker has them before him. */
type Stream = readonly LogBlock[];

interface Way {
  readonly name: string;
  /** What becomes of the stream; `undefined` where it cannot be done to this block. */
  readonly alter: (stream: Stream, index: number) => Stream | undefined;
  /** What the verifier calls it, where only one name is right. */
  readonly kinds?: readonly string[];
  /** Where it is found may be later: only checkpoints show what was computed again. */
  readonly later?: true;
}

const lengthOf = ({ first_seq, last_seq }: LogBlock) => last_seq - first_seq + 1;

/** Numbered without a gap. */
function renumber(stream: Stream): Stream {
  let seq = 0;
  return stream.map((block) => {
    const first_seq = seq + 1;
    seq += lengthOf(block);
    return { ...block, first_seq, last_seq: seq };
  });
}

/** Hashes computed again from `from` on, as by one who knows how the chain is made. */
function rehash(stream: Stream, from: number, until = stream.length): Stream {
  const done: LogBlock[] = [];
  stream.forEach((block, index) => {
    const before = done.at(-1) ?? seedHead(block.tenant_id, block.stream_id);
    let { hash } = before;
    textsOf(block.body).forEach((text, at) => {
      hash = entryHash(hash, block.first_seq + at, text);
    });
    done.push(index < from || index >= until ? block : { ...block, hash });
  });
  return done;
}

const edit = (stream: Stream, index: number, change: Partial<LogBlock>): Stream =>
  stream.map((block, at) => (at === index ? { ...block, ...change } : block));

/** Changes what one entry of the block says, and leaves the columns. */
function editFacts(stream: Stream, index: number, change: Partial<EntryFacts>): Stream {
  const block = stream[index];
  const texts = textsOf(block?.body ?? '');
  const at = texts.length >> 1;
  const facts = factsOf(texts[at] ?? '');
  assert.ok(block && facts);
  const text = textOf({ tenant_id: block.tenant_id, ...facts, ...change }, facts.state);
  return edit(stream, index, { body: bodyOf(texts.with(at, text)) });
}

/** Without one of its entries; `undefined` for a block that has no other. */
function cut(block: LogBlock | undefined, at: number): Partial<LogBlock> | undefined {
  const texts = textsOf(block?.body ?? '');
  if (block === undefined || texts.length === 1) return undefined;
  return { body: bodyOf(texts.toSpliced(at, 1)), last_seq: block.last_seq - 1 };
}

const facts = {
  created_at: 1 as EntryFacts['created_at'],
  actor_id: 'somebody-else',
  actor_type: 'user',
  entity_type: 'bank',
  entity_id: 'another',
  operation: 'list',
  message: 'Nothing happened',
  result: 'unknown',
  origin: '10.1.1.1',
  trace_id: 'another',
} as const satisfies Partial<EntryFacts>;

const columns = {
  last_seq: 9_999,
  first_at: 1 as LogBlock['first_at'],
  last_at: 9_999_999_999_999 as LogBlock['last_at'],
  hash: 'a'.repeat(64),
  entities: 'AAAA',
  body: 'x',
} as const satisfies Partial<LogBlock>;

const ways: readonly Way[] = [
  ...Object.entries(facts).map(
    ([name, value]): Way => ({
      name: `edit ${name} of an entry`,
      alter: (stream, index) => editFacts(stream, index, { [name]: value }),
      kinds: ['edited'],
    }),
  ),
  ...Object.entries(columns).map(
    ([name, value]): Way => ({
      name: `edit the column ${name}`,
      alter: (stream, index) => edit(stream, index, { [name]: value }),
      kinds: ['edited'],
    }),
  ),
  {
    name: 'edit, and compute its hash again',
    alter: (stream, index) => rehash(editFacts(stream, index, { message: 'x' }), index, index + 1),
    kinds: ['edited'],
    later: true,
  },
  {
    name: 'edit, and compute all later hashes again',
    alter: (stream, index) => rehash(editFacts(stream, index, { message: 'x' }), index),
    kinds: ['edited'],
    later: true,
  },
  ...[0, -1].map(
    (at): Way => ({
      name: `delete the ${at === 0 ? 'first' : 'last'} entry of a block, and renumber`,
      alter: (stream, index) => {
        const change = cut(stream[index], at);
        return change && renumber(edit(stream, index, change));
      },
    }),
  ),
  {
    name: 'delete an entry of a block, renumber, and compute all later hashes again',
    alter: (stream, index) => {
      const change = cut(stream[index], 0);
      return change && rehash(renumber(edit(stream, index, change)), index);
    },
    later: true,
  },
  {
    name: 'delete',
    alter: (stream, index) => stream.filter((_, at) => at !== index),
    kinds: ['deleted', 'truncated'],
  },
  {
    name: 'delete, and renumber',
    alter: (stream, index) => renumber(stream.filter((_, at) => at !== index)),
    kinds: ['deleted', 'truncated'],
  },
  {
    name: 'delete, renumber, and compute all later hashes again',
    alter: (stream, index) => rehash(renumber(stream.filter((_, at) => at !== index)), index),
    later: true,
  },
  {
    name: 'insert a forged block',
    alter: (stream, index) => {
      const like = stream[index];
      const forged = like && { ...like, hash: 'f'.repeat(64) };
      return forged && renumber(stream.toSpliced(index, 0, forged));
    },
    kinds: ['inserted'],
  },
  {
    name: 'insert a copy of another block',
    alter: (stream, index) => {
      const copy = stream[(index + 3) % stream.length];
      // Two of the same next to each other: either is the copy.
      if (!copy || copy === stream[index]) return undefined;
      return renumber(stream.toSpliced(index, 0, copy));
    },
    kinds: ['inserted'],
  },
  {
    name: 'insert, and compute all later hashes again',
    alter: (stream, index) => {
      const [forged] = editFacts(stream.slice(index), 0, facts);
      return forged && rehash(renumber(stream.toSpliced(index, 0, forged)), index);
    },
    later: true,
  },
  {
    name: 'swap with the next',
    alter: (stream, index) => {
      const [one, two] = stream.slice(index, index + 2);
      return one && two && renumber(stream.with(index, two).with(index + 1, one));
    },
    kinds: ['reordered'],
  },
  {
    name: 'swap, and compute all later hashes again',
    alter: (stream, index) => {
      const [one, two] = stream.slice(index, index + 2);
      return one && two && rehash(renumber(stream.with(index, two).with(index + 1, one)), index);
    },
    later: true,
  },
  {
    name: 'move to the end',
    alter: (stream, index) => {
      const moved = stream[index];
      if (!moved || index === stream.length - 1) return undefined;
      return renumber([...stream.toSpliced(index, 1), moved]);
    },
    kinds: ['reordered'],
  },
  {
    name: 'truncate',
    alter: (stream, index) => stream.slice(0, index),
    kinds: ['truncated'],
  },
  {
    name: 'delete all before',
    alter: (stream, index) => (index === 0 ? undefined : stream.slice(index)),
    kinds: ['deleted'],
    later: true,
  },
];

onBothEngines('the log in the database', (engine) => {
  test('verifies as it was written, and what is done to any block in any way is found', async (t) => {
    const { blocks, statements, kept, covered } = await sampleOf(t, engine);
    assert.deepEqual(verify({ blocks, statements, kept }).findings, []);
    assert.ok(blocks.some((block) => lengthOf(block) >= 12));

    let tried = 0;
    for (const [id, last] of covered) {
      const others = blocks.filter(({ stream_id }) => stream_id !== id);
      // What follows the last checkpoint is not kept by anybody; see docs/audit.md.
      const stream = blocks.filter((block) => block.stream_id === id && block.last_seq <= last);
      assert.equal(stream.at(-1)?.last_seq, last, 'a checkpoint names the end of a block');
      for (const [index, block] of stream.entries()) {
        for (const way of ways) {
          const altered = way.alter(stream, index);
          if (!altered) continue;
          // The attacker also takes away the checkpoint that the auditor has kept.
          const own = statements.filter(
            (record) => !('signed' in record) || record.signed.signature !== kept.signature,
          );
          const { findings } = verify({ blocks: [...others, ...altered], statements: own, kept });
          const finding = findings.find(({ stream_id }) => stream_id === id);
          const what = `${way.name}: entries ${block.first_seq} to ${block.last_seq} of ${last}`;
          assert.ok(finding, `not found: ${what}`);
          if (way.kinds) assert.ok(way.kinds.includes(finding.kind), `${finding.kind}: ${what}`);
          if (!way.later) assert.equal(finding.seq, block.first_seq, what);
          else assert.ok(finding.seq <= last + 1, what);
          tried += 1;
        }
      }
    }
    t.diagnostic(`${tried} alterations of ${blocks.length} blocks, all found`);
  });
});
