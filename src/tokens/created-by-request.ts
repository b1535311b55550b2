/** Tokens that a request itself made earlier on: it may have more changes than it can remember. */

import { findLogs } from '../audit/find.ts';
import { type Instant, instantAfter } from '../base/clock.ts';
import type { Caller } from '../rules/caller.ts';
import type { Store } from '../store/store.ts';
import type { TakenId } from './taken-ids.ts';

export interface RequestTokens {
  /** When the request began; older tokens are not its own, and are not looked up. */
  readonly since: Instant;
  readonly tokens: readonly TakenId[];
}

/** The tokens whose creation is in the log under the trace id and the mark of this request. */
export async function createdByRequest(
  store: Store,
  { tenant, application, origin }: Caller,
  { since, tokens }: RequestTokens,
): Promise<ReadonlySet<string>> {
  const made = new Set<string>();
  const own = tokens.filter((row) => row.created_at >= since && row.created_by === application);
  const about = { tenant: tenant.id, entity_type: 'token', after: undefined, skip: 0 };
  for (const [at, rows] of Map.groupBy(own, (row) => row.created_at)) {
    const ids = new Set<string>(rows.map((row) => row.token_id));
    const [only] = ids.size === 1 ? ids : [];
    const then = { oldest: at, until: instantAfter(at, 1), limit: Number.POSITIVE_INFINITY };
    for (const entry of await findLogs(store, { ...about, ...then, entity_id: only })) {
      const { entity_id: id, operation, trace_id } = entry;
      if (operation === 'create' && trace_id === origin.traceId && ids.has(id)) made.add(id);
    }
  }
  return made;
}
