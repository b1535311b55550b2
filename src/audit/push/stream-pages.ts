/** Reading what is to be pushed: the entries of a stream after a place, with the hashes that they were written with. */
import type { TenantId } from '../../base/ids.ts';
import { chainBlock, type LogBlock } from '../../store/log-chain/block.ts';
import { type ChainedEntry, streamSeed } from '../../store/log-chain/entries.ts';
import { blockBefore, blocksToPush } from '../../store/queries/log-pushes.ts';
import type { Store } from '../../store/store.ts';
import { openRemoval } from '../statements.ts';

/** Blocks of one read: about as many entries as a batch takes, where many are written. */
const blocksMax = 8;

export interface StreamPage {
  /** In their order. */
  readonly entries: readonly ChainedEntry[];
  /** Where the next page begins, if the stream goes on. */
  readonly last: number;
}

export interface StreamStart {
  readonly tenant: TenantId;
  readonly stream_id: string;
  /** The last entry that was pushed. */
  readonly after: number;
}

/** A page without entries is the end of the stream, as it is now. */
export async function readStream(store: Store, start: StreamStart): Promise<StreamPage> {
  const blocks = await store.select(blocksToPush({ ...start, limit: blocksMax }));
  const [first] = blocks;
  if (first === undefined) return { entries: [], last: start.after };
  let hash = await hashBefore(store, start, first);
  const entries: ChainedEntry[] = [];
  let last = start.after;
  for (const block of blocks) {
    for (const entry of chainBlock(hash, block)) if (entry.seq > start.after) entries.push(entry);
    hash = block.hash;
    last = block.last_seq;
  }
  return { entries, last };
}

async function hashBefore(
  store: Store,
  { tenant, stream_id }: StreamStart,
  { first_seq }: LogBlock,
): Promise<string> {
  if (first_seq === 1) return streamSeed(tenant, stream_id);
  const after = first_seq - 1;
  const [before] = await store.select(blockBefore({ tenant, stream_id, after }));
  if (before) return before.hash;
  const removal = await store.get('log_removals', { tenant_id: tenant, stream_id });
  // Without either, entries are missing, and whoever verifies what was pushed finds that.
  return (removal && openRemoval(removal)?.last_hash) ?? '';
}
