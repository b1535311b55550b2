/** Exporting tokens: a list that is walked to its end, batch by batch, however long it is. */
import { newEvaluation } from '../expressions/evaluation/evaluation.ts';
import { type Caller, payerOf } from '../rules/caller.ts';
import { entryOf } from '../rules/log-entries.ts';
import { type Decide, perform } from '../rules/operation.ts';
import { refuse } from '../rules/refusal.ts';
import type { TokenBody } from '../rules/reply.ts';
import type { LogEntry } from '../store/log-chain/entries.ts';
import type { TokenPosition } from '../store/queries/token-sources.ts';
import type { TokenReading } from './read.ts';
import { findBatch } from './search/choose-index.ts';
import { type KeyFollowing, underCurrentKeys } from './search/current-keys.ts';
import { conditionsOf, containerAllowed, type TokenFilter } from './search/filter.ts';
import { showTokens } from './show.ts';

/** Tokens that are in memory at once. */
export const batchTokensMax = 256;

/**
 * Bytes of their sealed data, past which a batch takes no more of them: a token may have a megabyte. A
 * batch is held for as long as its client takes to read it.
 */
export const batchBytesMax = 524_288;

/** The log's name of a failed attempt. */
const route = { permission: 'token:read', method: 'GET', path: '/tokens/export' };

export interface Exporting {
  /** The caller as of now. */
  readonly caller: () => Promise<Caller>;
  /** How many tokens the next batch may have, at most so many. */
  readonly tokensOfBatch: (tokensMax: number) => number;
  readonly filter: TokenFilter;
}

/**
 * The tokens that the caller may read, newest first, each as it is when its batch is read. Every
 * token that exists from the beginning to the end comes exactly once, whatever is created and
 * deleted in the meantime. A batch is yielded when its entries are in the log.
 *
 * @throws VaultError `forbidden` for a container on which the caller does not hold `token:read`.
 */
export async function* exportTokens(
  tools: TokenReading & KeyFollowing,
  { caller: asking, tokensOfBatch, filter }: Exporting,
): AsyncGenerator<readonly TokenBody[]> {
  let after: TokenPosition | undefined;
  do {
    const { bodies, next } = await exportBatch(tools, await asking(), {
      ...{ filter, after },
      tokensMax: tokensOfBatch(batchTokensMax),
    });
    yield bodies;
    after = next;
  } while (after);
}

interface BatchToExport {
  readonly filter: TokenFilter;
  readonly after: TokenPosition | undefined;
  readonly tokensMax: number;
}

interface ExportBatch {
  readonly bodies: readonly TokenBody[];
  readonly next: TokenPosition | undefined;
}

/** In a function of its own, so that rows are not held while a client reads. */
async function exportBatch(
  tools: TokenReading & KeyFollowing,
  caller: Caller,
  { filter, after, tokensMax }: BatchToExport,
): Promise<ExportBatch> {
  const permission = 'token:read' as const;
  const { store, clock } = tools;
  const now = clock.now();
  if (!containerAllowed(caller, permission, filter)) {
    const refusal = refuse(caller, now, { entity: 'token', id: '*', permission });
    await perform({ store, actor: caller, clock, route }, async () => refusal);
  }
  const wanted = { after, tokensMax, bytesMax: batchBytesMax, payer: payerOf(caller) };
  const { rows, next } = await underCurrentKeys(tools, caller.tenant, (tenant) => {
    const conditions = conditionsOf({ tenant, policy: caller.policy }, permission, { filter, now });
    return findBatch(store, conditions, wanted);
  });
  const evaluationFor = () => newEvaluation();
  const showing = { rows, permission, through: 'export', now, evaluationFor } as const;
  let bodies: readonly TokenBody[] = [];
  const show: Decide = async () => {
    const shown = await showTokens(tools, caller, showing);
    bodies = shown.bodies;
    const entries: [LogEntry, ...LogEntry[]] = [exported(caller, now), ...shown.reads];
    return { change: { entries }, reply: { status: 200 } };
  };
  await perform({ store, actor: caller, clock, route }, show);
  return { bodies, next };
}

function exported(caller: Caller, now: Parameters<typeof entryOf>[1]): LogEntry {
  return entryOf(caller, now, { entity: 'token', id: caller.tenant.id, operation: 'export' });
}
