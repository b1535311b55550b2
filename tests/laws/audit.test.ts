/** Whatever is done to any entry of the log is found and located, given the last checkpoint kept. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Signed } from '../../src/audit/statements.ts';
import { openCheckpoint } from '../../src/audit/statements.ts';
import {
  type ChainedEntry,
  entryHash,
  seedHead,
  textOf,
} from '../../src/store/log-chain/entries.ts';
import { type Engine, onBothEngines } from '../support/engines.ts';
import {
  type LogParts,
  mixedTraffic,
  readParts,
  signCheckpoints,
  verifyParts,
} from '../support/logs.ts';
import { startVault } from '../support/vault.ts';

interface Sample extends LogParts {
  /** The newest checkpoint, kept by the auditor. */
  readonly kept: Signed;
  /** Entries the newest checkpoint covers, by stream. */
  readonly covered: ReadonlyMap<string, number>;
}

/** Two runs of a vault, so that there are several streams, with checkpoints before, between and after. */
async function sampleOf(t: TestContext, engine: Engine): Promise<Sample> {
  const first = await startVault(t, engine);
  await mixedTraffic(first, 1);
  await signCheckpoints(first);
  await mixedTraffic(first, 1);
  await first.stop();
  const second = await startVault(t, engine, { place: first.place, clock: first.clock });
  await mixedTraffic(second, 1);
  await signCheckpoints(second);
  await second.stop();
  const parts = await readParts(first.place);
  const checkpoints = parts.statements.flatMap((record) =>
    record.kind === 'checkpoint' ? [record.signed] : [],
  );
  const kept = checkpoints.at(-1);
  assert.ok(kept);
  const covered = new Map<string, number>();
  for (const signed of checkpoints) {
    for (const [stream, seq] of openCheckpoint(signed)?.heads ?? []) covered.set(stream, seq);
  }
  return { ...parts, kept, covered };
}

/** The entries of one stream in their order, as an attacker has them before him. */
type Stream = readonly ChainedEntry[];

interface Way {
  readonly name: string;
  /** What becomes of the stream; `undefined` where it cannot be done to this entry. */
  readonly alter: (stream: Stream, index: number) => Stream | undefined;
  /** What the verifier calls it, where only one name is right. */
  readonly kinds?: readonly string[];
  /** Where it is found may be later: only checkpoints show what was computed anew. */
  readonly later?: true;
}

const forged: Partial<ChainedEntry> = {
  operation: 'read',
  entity_id: 'forged',
  hash: 'f'.repeat(64),
};

const renumber = (stream: Stream): Stream =>
  stream.map((entry, index) => ({ ...entry, seq: index + 1 }));

/** Hashes computed anew from `from` on, as by one who knows how the chain is made. */
function rehash(stream: Stream, from: number, until = stream.length): Stream {
  const done: ChainedEntry[] = [];
  stream.forEach((entry, index) => {
    const previous = done.at(-1) ?? seedHead(entry.tenant_id, entry.stream_id);
    const written = () => entryHash(previous.hash, entry.seq, textOf(entry, entry.state));
    const hash = index < from || index >= until ? entry.hash : written();
    done.push({ ...entry, hash });
  });
  return done;
}

const edit = (stream: Stream, index: number, change: Partial<ChainedEntry>): Stream =>
  stream.map((entry, at) => (at === index ? { ...entry, ...change } : entry));

const insert = (stream: Stream, index: number, entry: ChainedEntry): Stream => [
  ...stream.slice(0, index),
  entry,
  ...stream.slice(index),
];

const fields = {
  created_at: 1 as ChainedEntry['created_at'],
  actor_id: 'somebody-else',
  actor_type: 'user',
  entity_type: 'bank',
  entity_id: 'another',
  operation: 'list',
  message: 'Nothing happened',
  result: 'unknown',
  origin: '10.1.1.1',
  trace_id: 'another',
} as const satisfies Partial<ChainedEntry>;

const ways: readonly Way[] = [
  ...Object.entries(fields).map(
    ([name, value]): Way => ({
      name: `edit ${name}`,
      alter: (stream, index) => edit(stream, index, { [name]: value }),
      kinds: ['edited'],
    }),
  ),
  {
    name: 'edit the hash',
    alter: (stream, index) => edit(stream, index, { hash: 'a'.repeat(64) }),
    kinds: ['edited'],
  },
  {
    name: 'edit, and compute its hash anew',
    alter: (stream, index) => rehash(edit(stream, index, fields), index, index + 1),
    kinds: ['edited'],
    later: true,
  },
  {
    name: 'edit, and compute all later hashes anew',
    alter: (stream, index) => rehash(edit(stream, index, fields), index),
    kinds: ['edited'],
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
    name: 'delete, renumber, and compute all later hashes anew',
    alter: (stream, index) => rehash(renumber(stream.filter((_, at) => at !== index)), index),
    later: true,
  },
  {
    name: 'insert a forged entry',
    alter: (stream, index) => {
      const like = stream[index];
      return like && renumber(insert(stream, index, { ...like, ...forged }));
    },
    kinds: ['inserted'],
  },
  {
    name: 'insert a copy of another entry',
    alter: (stream, index) => {
      const copy = stream[(index + 3) % stream.length];
      // Two of the same side by side: either is the copy.
      if (!copy || copy === stream[index]) return undefined;
      return renumber(insert(stream, index, copy));
    },
    kinds: ['inserted'],
  },
  {
    name: 'insert, and compute all later hashes anew',
    alter: (stream, index) => {
      const like = stream[index];
      return like && rehash(renumber(insert(stream, index, { ...like, ...forged })), index);
    },
    later: true,
  },
  {
    name: 'swap with the next',
    alter: (stream, index) => {
      const [one, two] = stream.slice(index, index + 2);
      if (!one || !two) return undefined;
      return renumber([...stream.slice(0, index), two, one, ...stream.slice(index + 2)]);
    },
    kinds: ['reordered'],
  },
  {
    name: 'swap with the next but two',
    alter: (stream, index) => {
      const [one, two] = [stream[index], stream[index + 3]];
      if (!one || !two) return undefined;
      return renumber(stream.with(index, two).with(index + 3, one));
    },
    kinds: ['reordered'],
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
    name: 'swap, and compute all later hashes anew',
    alter: (stream, index) => {
      const [one, two] = stream.slice(index, index + 2);
      if (!one || !two) return undefined;
      const swapped = [...stream.slice(0, index), two, one, ...stream.slice(index + 2)];
      return rehash(renumber(swapped), index);
    },
    later: true,
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

onBothEngines('the log', (engine) => {
  test('verifies as it was written, and what is done to any entry in any way is found', async (t) => {
    const { entries, statements, kept, covered } = await sampleOf(t, engine);
    const intact = verifyParts({ entries, statements }, { kept: [kept] });
    assert.deepEqual(intact.findings, []);
    assert.ok(covered.size >= 2, 'several streams');
    assert.ok(intact.uncovered > 0, 'the entry of a checkpoint is newer than the checkpoint');

    let tried = 0;
    for (const [id, last] of covered) {
      const others = entries.filter((entry) => entry.stream_id !== id);
      // What follows the last checkpoint is not kept by anybody; see docs/audit.md.
      const stream = entries.filter((entry) => entry.stream_id === id).slice(0, last);
      for (let index = 0; index < last; index += 1) {
        for (const way of ways) {
          const altered = way.alter(stream, index);
          if (!altered) continue;
          // The attacker also takes away the checkpoint that the auditor has kept.
          const own = statements.filter(
            (record) => record.kind !== 'checkpoint' || record.signed.signature !== kept.signature,
          );
          const { findings } = verifyParts(
            { entries: [...others, ...altered], statements: own },
            { kept: [kept] },
          );
          const finding = findings.find(({ stream_id }) => stream_id === id);
          const what = `${way.name}: entry ${index + 1} of ${last}`;
          assert.ok(finding, `not found: ${what}`);
          if (way.kinds) assert.ok(way.kinds.includes(finding.kind), `${finding.kind}: ${what}`);
          if (!way.later) assert.equal(finding.seq, index + 1, what);
          else assert.ok(finding.seq <= last + 1, what);
          tried += 1;
        }
      }
    }
    t.diagnostic(`${tried} alterations of ${entries.length} entries, all found`);
  });
});
