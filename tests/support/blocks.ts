/** Blocks of the log as tests see them: as their entries, and as made by one who can write to the database. */
import {
  chainBlock,
  type LogBlock,
  textsOf,
  writtenEntry,
} from '../../src/store/log-chain/block.ts';
import { LogChain } from '../../src/store/log-chain/chain.ts';
import {
  type ChainedEntry,
  factsOf,
  type StatedEntry,
  streamSeed,
} from '../../src/store/log-chain/entries.ts';
import type { Store } from '../../src/store/store.ts';
import type { Row, Table } from '../../src/store/tables.ts';
import type { Engine, Place } from './engines.ts';
import { literal } from './sql.ts';

/** What tests read from a table: of the log its entries, in their places. */
export type Content<T extends Table> = T extends 'logs' ? ChainedEntry : Row<T>;

/** The entries of blocks in any order, each with the hash that it was written with. */
export function entriesOf(blocks: readonly LogBlock[]): ChainedEntry[] {
  const ends = new Map(
    blocks.map(({ tenant_id, stream_id, last_seq, hash }) => [
      `${tenant_id} ${stream_id} ${last_seq}`,
      hash,
    ]),
  );
  return blocks.flatMap((block) => {
    const { tenant_id, stream_id, first_seq } = block;
    const before = ends.get(`${tenant_id} ${stream_id} ${first_seq - 1}`);
    return chainBlock(before ?? streamSeed(tenant_id, stream_id), block);
  });
}

/** All entries of a store, stream by stream. */
export async function entriesIn(store: Pick<Store, 'select'>): Promise<ChainedEntry[]> {
  const blocks = await store.select((db) =>
    db
      .selectFrom('logs')
      .selectAll()
      .orderBy('tenant_id')
      .orderBy('stream_id')
      .orderBy('first_seq'),
  );
  return entriesOf(blocks);
}

/** Blocks of a stream of their own, whose chain is right: no key is needed for that. */
export function forgedBlocks(stream: string, entries: readonly StatedEntry[]): LogBlock[] {
  const written = entries.map((entry) => writtenEntry(entry, entry.state));
  const { blocks } = new LogChain(stream).continue([{ entries: written, provers: [] }]);
  return blocks.map(({ block }) => block);
}

/** The texts of a block as a body that has no line shortened. */
export function bodyOf(texts: readonly string[]): string {
  return texts.join('\n');
}

/** Changes what an entry of a stored block says, and nothing else of the block, which is given as it is then. */
export async function editEntry(
  engine: Engine,
  place: Place,
  block: LogBlock,
  { seq, change }: { readonly seq: number; readonly change: Partial<StatedEntry> },
): Promise<LogBlock> {
  const texts = textsOf(block.body);
  const facts = factsOf(texts[seq - block.first_seq] ?? '');
  if (facts === undefined) throw new Error('the block has no such entry');
  const entry = { tenant_id: block.tenant_id, ...facts, ...change };
  const text = writtenEntry(entry, entry.state).text;
  const body = bodyOf(texts.with(seq - block.first_seq, text));
  await engine.run(place, `update logs set body = ${literal(engine, body)} where ${keyOf(block)}`);
  return { ...block, body };
}

/** The condition that selects one block. */
export function keyOf({ tenant_id, stream_id, first_seq }: LogBlock): string {
  return `tenant_id = '${tenant_id}' and stream_id = '${stream_id}' and first_seq = ${first_seq}`;
}
