/** Tokens that a request itself made earlier on: it may have more changes than it can remember. */
import type { Instant } from '../../lib/clock.ts';
import type { Caller } from '../../rules/caller.ts';
import { tokensCreatedInTrace } from '../../store/queries/logs.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';

export interface RequestTokens {
  /** When the request began; what is older is not its own, also when it repeats a trace id. */
  readonly since: Instant;
  readonly tokens: readonly Row<'tokens'>[];
}

/** Those of the tokens whose creation is in the log under the trace id of this request. */
export async function createdByRequest(
  store: Store,
  { tenant, application, origin }: Caller,
  { since, tokens }: RequestTokens,
): Promise<ReadonlySet<string>> {
  const made = new Set<string>();
  const own = tokens.filter((row) => row.created_at >= since && row.created_by === application);
  for (const [at, rows] of Map.groupBy(own, (row) => row.created_at)) {
    const ids = rows.map((row) => row.token_id);
    const entries = await store.select(
      tokensCreatedInTrace({ tenant: tenant.id, at, tokens: ids, traceId: origin.traceId }),
    );
    for (const { entity_id } of entries) made.add(entity_id);
  }
  return made;
}
