/** Large tokens of a page: read, logged and shown one at a time, while the page is being written. */

import type { KeyedMutex } from '../base/keyed-mutex.ts';
import type { Evaluation } from '../expressions/evaluation/evaluation.ts';
import type { Caller } from '../rules/caller.ts';
import { requireAccounted } from '../rules/openings.ts';
import type { ItemToWrite, TokenBody } from '../rules/reply.ts';
import type { ListedToken } from '../store/queries/token-pages.ts';
import type { TokenPosition } from '../store/queries/token-sources.ts';
import { isWhole } from '../store/stored-row.ts';
import type { TokenReading } from './read.ts';
import { findTokenAt } from './search/choose-index.ts';
import { type KeyFollowing, underCurrentKeys } from './search/current-keys.ts';
import { conditionsOf, type TokenFilter } from './search/filter.ts';
import { showTokens, type TokensToShow } from './show.ts';

export interface LargeTokens extends TokenReading, KeyFollowing {
  /** However many clients request them, only one large token at a time is opened. */
  readonly inTurn: KeyedMutex;
}

export interface PageToWrite extends Pick<TokensToShow, 'permission' | 'through'> {
  readonly page: readonly ListedToken[];
  /** Those of the page that are not large, as far as the caller sees them. */
  readonly bodies: readonly TokenBody[];
  readonly filter: TokenFilter;
  readonly evaluation: Evaluation;
}

/**
 * The tokens of the page in their order. A large one is given as it is when it is read, once its
 * entry is in the log. One that by then is gone, has left the list, or may not be seen any more is
 * left out.
 */
export function itemsOf(
  tools: LargeTokens,
  { page, bodies, ...showing }: PageToWrite,
): ItemToWrite[] {
  // No item holds its row, nor the data in it, while a client reads.
  const byId = new Map(bodies.map((body) => [body.id, body]));
  return page.map((row) => {
    const body = byId.get(row.token_id);
    if (isWhole(row)) return () => body;
    const large = { at: row.created_at, id: row.token_id };
    return (asking) =>
      tools.inTurn('large token', () => readLarge(tools, { ...showing, asking, large }));
  });
}

interface LargeTokenQuery extends Omit<PageToWrite, 'page' | 'bodies'> {
  readonly asking: () => Promise<Caller>;
  readonly large: TokenPosition;
}

/** As the caller may see it by now: while a client reads, its key may be revoked and its rules changed. */
async function readLarge(
  tools: LargeTokens,
  { asking, large, permission, through, filter, evaluation }: LargeTokenQuery,
): Promise<TokenBody | undefined> {
  const caller = await asking();
  const now = tools.clock.now();
  const row = await underCurrentKeys(tools, caller.tenant, (tenant) => {
    const conditions = conditionsOf({ tenant, policy: caller.policy }, permission, { filter, now });
    return findTokenAt(tools.store, conditions, large);
  });
  if (row === undefined) return undefined;
  const showing = { rows: [row], permission, through, now, evaluationFor: () => evaluation };
  const { bodies, reads } = await showTokens(tools, caller, showing);
  const [entry] = reads;
  requireAccounted(caller, reads);
  if (entry) await tools.store.commit({ entries: [entry] });
  return bodies[0];
}
